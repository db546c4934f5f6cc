"""Which host holds which stretch of which stream, counted in rows, during a simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.arrivals import Arrivals
from windjoin.diffusion.router import Move, Placement
from windjoin.diffusion.simulator_core import F64


class Holdings:
    """Stored stretches ``[start, stop)`` per stream, and the rows that arrived in them."""

    def __init__(self, arrivals: Arrivals, windows: Sequence[int], hosts: int) -> None:
        self.windows = list(windows)
        self.hosts = hosts
        self.share = np.ones(hosts)  # of the rows of its stretches that a host has: groups
        self._batches = [arrivals.of(stream) for stream in range(len(windows))]
        empty = np.empty((0, 4), np.int64)  # host, start, stop, marks
        self._held: list[I64] = [empty for _ in windows]

    def rows_before(self, stream: int, times: F64 | I64) -> F64:
        """How many rows of a stream arrive before each of these times."""
        batch_times, before = self._batches[stream]
        return np.asarray(before[np.searchsorted(batch_times, times)])

    def rows_in(self, stream: int, start: float, stop: float) -> float:
        """How many rows of a stream arrive in ``[start, stop)``."""
        low, high = self.rows_before(stream, np.array([start, max(stop, start)]))
        return float(high - low)

    def filled(self, stream: int, now: float) -> float:
        """Which share of a window there has been time to fill: what is there is scanned."""
        return min(1.0, now / max(self.windows[stream], 1))

    def store(self, stream: int, placement: Placement) -> None:
        """The parts of a placement are stored."""
        parts = [(p.host, p.start, p.stop, p.marks) for p in placement.parts]
        self._add(stream, np.array(parts, np.int64).reshape(-1, 4))

    def hold(self, stream: int, held: Sequence[tuple[int, int, int]]) -> None:
        """Exactly these stretches (host, start, stop) are stored of a stream."""
        rows = [(host, start, stop, 1) for host, start, stop in held]
        self._held[stream] = np.array(rows, np.int64).reshape(-1, 4)

    def move(self, move: Move) -> float:
        """Carry out a move; return how many rows it concerns."""
        if move.source is not None and not move.keep:
            self._take(move.stream, move.source, move.start, move.stop)
        self._take(move.stream, move.target, move.start, move.stop)  # never twice at a host
        row = [[move.target, move.start, move.stop, move.marks]]
        self._add(move.stream, np.array(row, np.int64))
        return self.rows_in(move.stream, move.start, move.stop)

    def per_host(self, stream: int, start: float, stop: float, marks: int = -1) -> F64:
        """Rows of ``[start, stop)`` stored at each host under one of the marks."""
        held = self._held[stream]
        low = np.maximum(held[:, 1], start)
        high = np.minimum(held[:, 2], stop)
        live = (high > low) & ((held[:, 3] & marks) != 0)
        low, high = low[live], high[live]
        rows = self.rows_before(stream, high) - self.rows_before(stream, low)
        counts = np.bincount(held[live, 0], weights=rows, minlength=self.hosts)
        return counts * self.share

    def state(self, now: float) -> F64:
        """Rows in the windows at ``now``, stored at each host."""
        total = np.zeros(self.hosts)
        for stream, window in enumerate(self.windows):
            total += self.per_host(stream, now - window, now)
        return total

    def distinct(self, now: float) -> float:
        """Rows in the windows at ``now``, each counted once."""
        return sum(self.rows_in(k, now - window, now) for k, window in enumerate(self.windows))

    def expire(self, horizon: float) -> None:
        """Forget what ends before the horizon less the stream's window."""
        for stream, window in enumerate(self.windows):
            held = self._held[stream]
            self._held[stream] = held[held[:, 2] > horizon - window]

    def _add(self, stream: int, rows: I64) -> None:
        self._held[stream] = np.concatenate([self._held[stream], rows])

    def _take(self, stream: int, host: int, start: int, stop: int) -> None:
        """Cut ``[start, stop)`` out of what a host holds."""
        held = self._held[stream]
        hit = (held[:, 0] == host) & (held[:, 1] < stop) & (held[:, 2] > start)
        if not hit.any():
            return
        before, after = held[hit], held[hit]
        before[:, 2] = np.minimum(before[:, 2], start)
        after[:, 1] = np.maximum(after[:, 1], stop)
        rest = np.concatenate([held[~hit], before, after])
        self._held[stream] = rest[rest[:, 2] > rest[:, 1]]
