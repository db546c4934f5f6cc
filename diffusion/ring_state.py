"""What one host of a ring stores: a slice by age of every stream's window.

A slice is a stretch of one stream's rows in arrival order.  Rows enter at the new end and leave at
the old end, so a row is named by its position since the beginning of time, and what a row in flight
may see is one pair of positions: ``(StateStart, StateEnd)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

I64: TypeAlias = NDArray[np.int64]


class RingRows(NamedTuple):
    """Rows of one stream in arrival order, without their payload.

    >>> RingRows.of([3, 5], [0, 1]).time.tolist()
    [3, 5]
    """

    time: I64  # (n,) event time, non-decreasing
    row: I64  # (n,) the caller's row numbers

    @classmethod
    def of(cls, time: object, row: object) -> RingRows:
        """Make rows of anything NumPy can read."""
        return cls(np.asarray(time, dtype=np.int64), np.asarray(row, dtype=np.int64))

    @property
    def size(self) -> int:
        """How many rows these are."""
        return int(self.time.shape[0])

    def cut(self, first: int, stop: int) -> RingRows:
        """The rows ``[first, stop)``, without copying."""
        return RingRows(self.time[first:stop], self.row[first:stop])


NO_ROWS = RingRows.of([], [])


class Span(NamedTuple):
    """The positions ``[start, end)`` of one stream that a row in flight may see on one host."""

    start: int
    end: int


@dataclass(slots=True)
class Slice:
    """One stream's rows on one host: the current ones, and older ones still needed in flight.

    ``kept <= start <= end`` are positions: rows ``[kept, start)`` have been passed on already and
    stay only for rows in flight, rows ``[start, end)`` are this host's own.

    >>> part = Slice()
    >>> part.append(RingRows.of([1, 4, 9], [0, 1, 2]))
    >>> part.purge(older_than=4).row.tolist(), part.own.row.tolist()
    ([0, 1], [2])
    >>> part.view(Span(0, 3)).row.tolist(), part.release(2), part.stored
    ([0, 1, 2], None, 1)
    """

    kept: int = 0  # position of the oldest row still stored
    start: int = 0  # position of the oldest row that is this host's own
    end: int = 0  # position after the newest row
    _time: I64 = field(default_factory=lambda: np.empty(16, np.int64))
    _row: I64 = field(default_factory=lambda: np.empty(16, np.int64))
    _first: int = 0  # index in the arrays of position ``kept``

    @property
    def own(self) -> RingRows:
        """The rows of this host's slice."""
        return self.view(Span(self.start, self.end))

    @property
    def size(self) -> int:
        """How many rows are this host's own."""
        return self.end - self.start

    @property
    def stored(self) -> int:
        """How many rows are in memory, those kept for rows in flight included."""
        return self.end - self.kept

    def view(self, span: Span) -> RingRows:
        """The rows of a span that has not been released, without copying."""
        if span.start < self.kept or span.end > self.end:
            raise IndexError(
                f"positions {span.start}..{span.end} are not stored: this slice holds "
                f"{self.kept}..{self.end}; release only what no row in flight needs"
            )
        first = self._first + span.start - self.kept
        stop = self._first + span.end - self.kept
        return RingRows(self._time[first:stop], self._row[first:stop])

    def append(self, rows: RingRows) -> None:
        """Add rows at the new end; they must not be older than the newest row stored."""
        if not rows.size:
            return
        if self.stored and rows.time[0] < self._time[self._first + self.stored - 1]:
            newest = int(self._time[self._first + self.stored - 1])
            raise ValueError(
                f"row {int(rows.row[0])} of time {int(rows.time[0])} came after time {newest}; "
                "a ring takes each stream in time order"
            )
        self._make_room(rows.size)
        begin = self._first + self.stored
        self._time[begin : begin + rows.size] = rows.time
        self._row[begin : begin + rows.size] = rows.row
        self.end += rows.size

    def purge(self, *, older_than: int, at_most: int | None = None) -> RingRows:
        """Give up own rows with ``time <= older_than``, and the oldest beyond ``at_most`` rows."""
        own = self.own
        leaving = int(np.searchsorted(own.time, older_than, side="right"))
        if at_most is not None:
            leaving = max(leaving, own.size - at_most)
        self.start += leaving
        return RingRows(own.time[:leaving].copy(), own.row[:leaving].copy())

    def release(self, oldest_needed: int) -> None:
        """Forget rows before this position, as far as they are no longer this host's own."""
        keep = min(oldest_needed, self.start)
        if keep > self.kept:
            self._first += keep - self.kept
            self.kept = keep

    def replace(self, rows: RingRows) -> None:
        """Hold exactly these rows from now on; only while nothing is in flight."""
        self.kept = self.start = self.end
        self._first = 0
        self.append(rows)

    def _make_room(self, more: int) -> None:
        stored = self.stored
        if self._first + stored + more <= self._time.shape[0]:
            return
        capacity = max(16, 2 * (stored + more))
        for name in ("_time", "_row"):
            array = np.empty(capacity, np.int64)
            array[:stored] = getattr(self, name)[self._first : self._first + stored]
            setattr(self, name, array)
        self._first = 0
