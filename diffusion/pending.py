"""Rows that have arrived and that no epoch has taken yet."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.host_window import Bools, position
from windjoin.pyx.base.pieces import joined, sorting_by, taken


class Pending:
    """Those of one stream: pieces, each in order of time.

    >>> pending = Pending()
    >>> pending.add(np.array([3, 8]), np.array([0, 1]))
    >>> pending.add(np.array([1, 5]), np.array([2, 3]))
    >>> times, rows = pending.take(6)
    >>> times.tolist(), rows.tolist(), pending.earliest
    ([1, 3, 5], [2, 0, 3], 8)
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[int, int, I64, I64]] = []  # first time, tie-breaker, times, rows
        self._added = 0

    @property
    def earliest(self) -> int | None:
        """The least time among them."""
        return self._pieces[0][0] if self._pieces else None

    def add(self, times: I64, rows: I64) -> None:
        """More rows, in order of time."""
        if len(times):
            self._added += 1
            heappush(self._pieces, (int(times[0]), self._added, times, rows))

    def renumber(self, numbers: Callable[[I64], tuple[Bools, I64]]) -> None:
        """Rows have other numbers, or are gone: which there still are, and their numbers."""
        pieces, self._pieces = self._pieces, []
        for _, _, times, rows in pieces:
            there, kept = numbers(rows)
            self.add(times[there], kept)

    def take(self, stop: int) -> tuple[I64, I64]:
        """All rows with time < ``stop``, by time and row."""
        found: list[tuple[I64, I64]] = []
        while self._pieces and self._pieces[0][0] < stop:
            _, _, times, rows = heappop(self._pieces)
            at = position(times, stop)
            if at == len(times):
                found.append((times, rows))
                continue
            found.append((times[:at], rows[:at]))
            self.add(times[at:], rows[at:])
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if len(found) == 1:
            return found[0]
        times = joined([piece[0] for piece in found])
        rows = joined([piece[1] for piece in found])
        if bool((rows[1:] > rows[:-1]).all()) and bool((times[1:] >= times[:-1]).all()):
            return times, rows
        order = sorting_by([rows, times])
        return taken(times, order), taken(rows, order)
