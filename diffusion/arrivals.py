"""When rows arrive in a simulation: Poisson streams with bursts and rates that change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.scenario import Scenario
from windjoin.diffusion.simulator_core import F64

BURST_SLOT_S = 2.0  # a stream keeps its pace for so long
ALTERNATE_S = 10.0  # as long a stream that alternates stays high or low
BURST_SHARE = 0.25  # share of the slots that are bursts


class Arrivals(NamedTuple):
    """Batches of rows in order of time."""

    time: F64  # ms
    stream: I64
    rows: F64

    def of(self, stream: int) -> tuple[F64, F64]:
        """Times of a stream's batches, and rows before each of them and in all."""
        mine = self.stream == stream
        return self.time[mine], np.concatenate([[0.0], np.cumsum(self.rows[mine])])


def arrivals_of(scenario: Scenario, visits: float) -> Arrivals:
    """The arrivals of all streams; ``visits`` is how many jobs a batch will make, roughly."""
    size = scenario.rows_per_batch or batch_size(scenario, visits)
    parts = [_stream(scenario, stream, size) for stream in range(len(scenario.streams))]
    time = np.concatenate([part[0] for part in parts])
    stream = np.concatenate([np.full(part[0].size, at) for at, part in enumerate(parts)])
    order = np.lexsort((stream, time))
    rows = np.concatenate([part[1] for part in parts])
    return Arrivals(time[order], stream[order].astype(np.int64), rows[order])


def batch_size(scenario: Scenario, visits: float) -> int:
    """Rows that arrive as one batch, so that a simulation keeps to its number of events."""
    rows = scenario.seconds * sum(spec.rate for spec in scenario.streams)
    return max(1, int(np.ceil(rows * max(visits, 1.0) / scenario.events)))


def visits_per_batch(scenario: Scenario, strategy: str, hosts: int) -> float:
    """Roughly how many jobs a batch makes."""
    streams = len(scenario.streams)
    if strategy == "psp":
        return float(hosts * (streams - 1))
    if strategy.startswith("atr"):
        span = 2 * max(spec.window_s for spec in scenario.streams)
        return float(min(hosts, 2 + span / scenario.segment_s))
    if strategy.startswith("ctr"):
        return float(min(hosts, 12)) * (streams - 1) * min(hosts, 8)
    return 1.0


def rate_at(scenario: Scenario, stream: int, seconds: F64) -> F64:
    """Rows per second of a stream at each of these times, without bursts.

    >>> from windjoin.diffusion.scenario import Change, StreamSpec
    >>> two = (StreamSpec("a", 5, 10), StreamSpec("b", 5, 10))
    >>> s = Scenario(streams=two, changes=(Change(at_s=60, stream="a", rate=10.0),))
    >>> rate_at(s, 0, np.array([59.0, 61.0])).tolist()
    [5.0, 10.0]
    """
    spec = scenario.streams[stream]
    rate = np.full(seconds.shape, float(spec.rate))
    for change in sorted(scenario.changes, key=lambda c: c.at_s):
        if change.stream == spec.name and change.rate is not None:
            rate[seconds >= change.at_s] = change.rate
    return rate


def _stream(scenario: Scenario, stream: int, size: int) -> tuple[F64, F64]:
    """One stream: a random number of rows in each slot, at random times, in groups of ``size``."""
    rng = np.random.default_rng([scenario.seed, stream])
    starts = np.arange(0.0, scenario.seconds, BURST_SLOT_S)
    lengths = np.minimum(BURST_SLOT_S, scenario.seconds - starts)
    burst = scenario.streams[stream].burst
    high = rng.random(starts.size) < BURST_SHARE
    pace = np.where(high, 1 + burst * (1 / BURST_SHARE - 1), 1 - burst)
    alternate = scenario.streams[stream].alternate
    if alternate is not None:
        turn = (starts // ALTERNATE_S).astype(np.int64) + int(rng.integers(2))
        pace = np.where(turn % 2 == 0, 1 + alternate, 1 - alternate) / 2
    counts = rng.poisson(rate_at(scenario, stream, starts) * lengths * pace)
    slot = np.repeat(np.arange(starts.size), counts)
    times = np.sort(starts[slot] + rng.random(slot.size) * lengths[slot]) * 1000.0
    if not times.size:
        return times, times
    first = np.arange(0, times.size, size)
    rows = np.diff(np.append(first, times.size)).astype(np.float64)
    return np.add.reduceat(times, first) / rows, rows
