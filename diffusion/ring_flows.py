"""What the event loop needs to know of a ring: work and outputs per wave and host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.scenario import Costs
from windjoin.diffusion.simulator_core import F64, RingTable

NO_RING = RingTable(
    order=np.empty(0, np.int64),
    elements=np.empty((0, 0)),
    made=np.empty((0, 0, 0)),
    work=np.empty((0, 0, 0)),
    gain=np.empty((0, 0, 0)),
    in_flight=1,
)


class RingFlows:
    """The flows of a ring so far; one per stream is added at every border."""

    def __init__(self, costs: Costs, match: Sequence[Sequence[float]]) -> None:
        self.costs = costs
        self.match = match
        self.streams = len(match)
        self.order = np.empty(0, np.int64)
        self.count = 0
        self._elements = np.ones((0, self.streams - 1))
        self._tables = np.zeros((3, 0, self.streams - 1, 0))  # made, work, gain

    def add(
        self,
        order: I64,
        held: Sequence[F64],
        probed: Sequence[Sequence[int]],
        filled: Sequence[float],
    ) -> int:
        """Add a flow per stream, from the rows each host holds of each stream; return the first.

        probed: by stream, the others in the order in which its rows probe them
        filled: which share of each window has had time to fill
        """
        if self.order.size != order.size:
            self._resize(order.size)
        self.order = order
        first = self.count
        while self.count + self.streams > len(self._elements):
            self._grow()
        for stream in range(self.streams):
            self._add_stream(stream, first + stream, held, probed[stream], filled)
        self.count += self.streams
        return first

    def table(self, in_flight: int) -> RingTable:
        """All flows so far, for the event loop."""
        made, work, gain = self._tables
        return RingTable(self.order, self._elements, made, work, gain, in_flight)

    def _add_stream(
        self,
        stream: int,
        flow: int,
        held: Sequence[F64],
        targets: Sequence[int],
        filled: Sequence[float],
    ) -> None:
        made, work, gain = self._tables
        self._elements[flow] = 1.0
        made[flow, 0] = 0.0
        for wave, k in enumerate(targets):
            total = held[k].sum()
            share = held[k] / total if total else np.full(held[k].size, 1.0 / held[k].size)
            work[flow, wave] = self.costs.probe_ms * share * (filled[k] if total else 0.0)
            work[flow, wave] += self.costs.compare_ms * held[k] + self.costs.call_ms * (held[k] > 0)
            gain[flow, wave] = self.match[stream][k] * held[k]
            if wave + 1 < self.streams - 1:
                made[flow, wave + 1] = share
                self._elements[flow, wave + 1] = self._elements[flow, wave] * gain[flow, wave].sum()

    def _grow(self) -> None:
        more = max(64 * self.streams, len(self._elements))
        self._elements = np.concatenate([self._elements, np.ones((more, self.streams - 1))])
        fresh = np.zeros((3, more, *self._tables.shape[2:]))
        self._tables = np.concatenate([self._tables, fresh], axis=1)

    def _resize(self, hosts: int) -> None:
        """Another number of hosts: what older flows still have to do is spread evenly over them."""
        totals = self._tables.sum(axis=3, keepdims=True)
        self._tables = np.repeat(totals / hosts, hosts, axis=3)
