"""From a router's answer to what the event loop needs: work and outputs per host and stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from windjoin.diffusion.holdings import Holdings
from windjoin.diffusion.router import Hop, Part, Route
from windjoin.diffusion.scenario import Scenario
from windjoin.diffusion.segments import FOREVER, NEVER
from windjoin.diffusion.simulator_core import ENTRY_COLUMNS, F64

Entry = tuple[float, ...]


class FlowMaker:
    """Makes the entries of a segment's flow: a stage per hop, an entry per host."""

    def __init__(self, scenario: Scenario, holdings: Holdings, *, keyed: bool = False) -> None:
        self.scenario = scenario
        self.keyed = keyed  # a host that has any partner of a row has all of them
        self.holdings = holdings
        streams = range(len(scenario.streams))
        self.counted: dict[tuple[int, float, float, int], tuple[F64, float]] = {}
        self.match = [[scenario.selectivity_of(i, k) for k in streams] for i in streams]

    def entries(self, route: Route, at: int) -> tuple[F64, int]:
        """The entries of a route, to stand from ``at`` on, and how many the first stage has."""
        self.counted.clear()
        first, *later = route.path.hops
        stages = [self._first_stage(route, first)]
        middle = (route.segment.start + route.segment.stop) / 2
        depth = 1 + len(first.streams)
        for hop in later:
            stages.append([
                self._entry(route.segment.stream, hop, host, middle, depth) for host in hop.hosts
            ])  # fmt: skip
            depth += len(hop.streams)
        rows: list[Entry] = []
        for number, stage in enumerate(stages):
            stop = at + len(rows) + len(stage)
            following = len(stages[number + 1]) if number + 1 < len(stages) else 0
            rows += [(*entry, stop, stop + following) for entry in stage]
        return np.array(rows, np.float64).reshape(-1, ENTRY_COLUMNS), len(stages[0])

    def _first_stage(self, route: Route, hop: Hop) -> list[Entry]:
        """Hosts that a new row visits, then hosts that only store it."""
        segment = route.segment
        visits = hop.parts or [Part(host, segment.start, segment.stop, -1) for host in hop.hosts]
        depth = 1
        stage = []
        for part in visits:
            first, last = max(part.start, segment.start), min(part.stop, segment.stop)
            for start, stop in self._pieces(first, last):
                entry = self._entry(
                    segment.stream, hop, part.host, (start + stop) / 2, depth, part.marks
                )
                stage.append((entry[0], start, stop, *entry[3:]))
        for part in route.placement.parts:
            for start, stop in _uncovered(part, visits):
                stage.append((part.host, start, stop, 0.0, 0.0, 0.0))
        return stage

    def _pieces(self, start: float, stop: float) -> list[tuple[float, float]]:
        """The stretch, cut where the windows slide too far for one estimate in its middle."""
        count = int(np.ceil((stop - start) / max(min(self.holdings.windows) / 4, 1.0)))
        edges = np.linspace(start, stop, max(count, 0) + 1)
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))

    def _entry(
        self, stream: int, hop: Hop, host: int, now: float, depth: int, marks: int = -1
    ) -> Entry:
        """What one element costs at a host and how many longer ones it makes there."""
        costs, work, gain = self.scenario.costs, 0.0, 1.0
        for k in hop.streams:
            low = now - self.holdings.windows[k]
            held, whole = self._held(k, low, now, marks)
            here = float(held[host])
            for start, stop in hop.voids.get(host, ()):
                here -= self._void(k, host, max(start, low), min(stop, now), marks)
            partners = whole if self.keyed else here
            looked_at = here if self.scenario.scanned else partners
            share = looked_at / whole * self.holdings.filled(k, now) if whole else 0.0
            work += gain * (costs.probe_ms * share + costs.compare_ms * looked_at)
            work += gain * costs.call_ms * (here > 0)
            gain *= self.match[stream][k] * partners
        depth += len(hop.streams)
        size = self.scenario.streams[stream].row_bytes * depth
        return (host, NEVER, FOREVER, work, gain, size)

    def _void(self, stream: int, host: int, start: float, stop: float, marks: int) -> float:
        if start >= stop:
            return 0.0
        return float(self._held(stream, start, stop, marks)[0][host])

    def _held(self, stream: int, start: float, stop: float, marks: int) -> tuple[F64, float]:
        """Rows of a stretch at each host, and in all; hosts of one segment ask for the same."""
        key = (stream, start, stop, marks)
        if key not in self.counted:
            self.counted[key] = (
                self.holdings.per_host(stream, start, stop, marks),
                self.holdings.rows_in(stream, start, stop),
            )
        return self.counted[key]


def _uncovered(part: Part, visits: Sequence[Part]) -> list[tuple[int, int]]:
    """The stretches of a stored part whose rows do not visit that host anyway."""
    rest = [(part.start, part.stop)]
    for visit in visits:
        if visit.host == part.host:
            rest = [
                piece
                for start, stop in rest
                for piece in ((start, min(stop, visit.start)), (max(start, visit.stop), stop))
                if piece[0] < piece[1]
            ]
    return rest
