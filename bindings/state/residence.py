"""Which rows of a session are in memory, when they were joined, and of which group they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from windjoin.kernels.intake import Intake
from windjoin.kernels.pairwise import common_key
from windjoin.kernels.spec import I64
from windjoin.kernels.window import LONG_AGO
from windjoin.kinds import INT64_MAX
from windjoin.state.numbering import Numbering

SPARSE = 3  # times the rows that stay: so many may be held with those that went


def groups_of_hashes(hashes: I64, count: int) -> I64:
    """Partition groups of keys by their hashes, which of integers are these themselves.

    >>> groups_of_hashes(np.arange(4), 300).tolist()
    [0, 184, 121, 6]
    """
    bits = hashes.view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    high = (mixed >> np.uint64(33)).astype(np.uint32)  # NumPy divides these fast, but no remainder
    groups: I64 = (high - high // np.uint32(count) * np.uint32(count)).astype(np.int64)
    return groups


class Residence:
    """An epoch ends whenever rows leave memory; a row belongs to that in which it was joined.

    Rows of one host are joined as they arrive, so epochs begin at arrival numbers; rows of several
    are joined in order of time, so epochs begin at times.
    """

    def __init__(self, live: Intake, groups: int) -> None:
        self._live, self.group_count = live, groups
        self.key = common_key(live.spec)
        self.numbering = [Numbering() for _ in live.windows]
        self.epoch = 0
        self.borders = np.empty(0, np.int64)  # times at which epochs begin
        self.over = 0  # epochs before those
        self._sparse = False  # whether rows that left have numbers between those that stayed
        self._kept = [0, 0]  # rows that stayed when others left, and the rows that had come by then
        self._keys: dict[int, I64] = {}  # by space and code, while no code changes
        self._by_code: I64 | None = None  # groups

    # -- numbers ---------------------------------------------------------------------------------

    def arrivals(self, stream: int, rows: I64) -> I64:
        """Arrival numbers of rows, by their numbers in the window."""
        return self.numbering[stream].arrivals(rows)

    def numbers(self, stream: int, arrivals: I64) -> I64:
        """Numbers in the window of rows; of those that are not there one before its head."""
        return self.numbering[stream].numbers(arrivals, self._live.windows[stream].head)

    @property
    def plain(self) -> bool:
        """Whether rows in memory are numbered as they arrived."""
        held = zip(self.numbering, self._live.windows, strict=True)
        return all(numbering.plain(window.head) for numbering, window in held)

    # -- epochs ----------------------------------------------------------------------------------

    def next_epoch(self) -> None:
        """Rows that are joined from now on are of another epoch."""
        for numbering, window in zip(self.numbering, self._live.windows, strict=True):
            numbering.next_epoch(window.tail)
        if self._live.joined_before is not None:
            border = min(self._live.joined_before, INT64_MAX)
            self.borders = np.append(self.borders, border)
        self.epoch += 1

    def epochs(self, stream: int, arrivals: I64, times: I64) -> I64:
        """In which epochs rows were joined."""
        if self._live.joined_before is None:
            return self.numbering[stream].epochs(arrivals)
        return np.searchsorted(self.borders, times, "right") + self.over

    def expire(self, time: int) -> None:
        """Nobody asks for rows before a time any more."""
        gone = max(int(np.searchsorted(self.borders, max(time, LONG_AGO), "right")) - 1, 0)
        self.borders, self.over = self.borders[gone:], self.over + gone

    def keep(self, rows: list[I64], in_place: bool) -> bool:
        """Only these are in memory any more, by number; whether they have other numbers now.

        in_place: others may stay where they are, as of keys none went in part, and nothing has to
        become smaller
        """
        kept, held = sum(map(len, rows)), sum(map(len, self._live.windows))
        self._kept = [kept, self._come()]
        if not kept and in_place and self._live.clear():
            for numbering, window in zip(self.numbering, self._live.windows, strict=True):
                numbering.keep(rows[0], window.tail)
            self._sparse = False
            self.recount()
            return False
        if in_place and self.key is not None and held <= SPARSE * kept and self._live.forget(rows):
            self.recount()
            self._sparse = True
            return False
        self._retain(rows)
        return True

    def pack(self) -> None:
        """Let numbers tell which rows are in memory, before others are to know it."""
        if self._sparse:
            self._retain([rows for rows, _ in self.alive()])

    def _retain(self, rows: list[I64]) -> None:
        self._sparse = False
        self.recount()
        for numbering, window, kept in zip(self.numbering, self._live.windows, rows, strict=True):
            numbering.keep(kept, window.tail)
        self._live.retain(rows)
        self.recount()

    @property
    def rows(self) -> int:
        """Rows in memory, of all streams; those that left may still have their numbers."""
        held = sum(map(len, self._live.windows))
        return min(held, self._kept[0] + self._come() - self._kept[1])

    @property
    def came(self) -> int:
        """Rows that came since others left."""
        return self._come() - self._kept[1]

    def went_on(self) -> None:
        """All rows in memory stayed when others left, and none has come since."""
        self._kept = [self.rows, self._come()]

    def _come(self) -> int:
        return sum(window.tail for window in self._live.windows)

    def resume(self, epoch: int, borders: Any, over: int) -> None:
        """Go on where another left off."""
        self.epoch, self.over = epoch, over
        self.borders = borders.column("time").to_numpy()

    # -- rows ------------------------------------------------------------------------------------

    def alive(self) -> list[tuple[I64, I64]]:
        """By stream, numbers and times of rows that others can still meet."""
        found = []
        for window in self._live.windows:
            times = window.times_held()
            there = np.flatnonzero(times >= max(window.extent.horizon, LONG_AGO + 1))
            found.append((there + window.head, times[there]))
        return found

    def joined(self, times: I64) -> Any:
        """Which rows in memory have been joined with all that was there, by their times."""
        there = times != LONG_AGO
        before = self._live.joined_before
        return there if before is None else there & (times < before)

    @property
    def mark(self) -> int:
        """All results before this time have been found, but for those that are owed."""
        mark = min(clock.watermark for clock in self._live.clocks)
        before = self._live.joined_before
        return mark if before is None else min(mark, before)

    # -- groups ----------------------------------------------------------------------------------

    def groups_of(self, stream: int, rows: I64) -> I64:
        """Partition groups of rows, by their numbers in the window."""
        if self.key is None:
            return np.zeros(len(rows), np.int64)
        exporter, key = self._live.exporter(stream, self._keys), self.key[stream]
        by_code = self._by_code
        if by_code is None:
            by_code = self._by_code = groups_of_hashes(exporter.hashes(key), self.group_count)
        found: I64 = by_code[exporter.codes(key, rows)]
        return found

    def exporters(self) -> list[Any]:
        """What gives rows of each stream, while no code changes."""
        return [self._live.exporter(k, self._keys) for k in range(len(self._live.windows))]

    def recount(self) -> None:
        """Codes of keys may have changed."""
        self._keys, self._by_code = {}, None
