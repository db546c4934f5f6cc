"""The rows of one stream that one host holds: stretches of time, each with its marks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from windjoin.diffusion.arrays import I64

LONG_AGO, LAST = -(2**63), 2**63 - 1  # the ends of int64
Bools = NDArray[np.bool_]
Chosen = Callable[[I64], Bools]  # which of these rows


@dataclass(slots=True)
class Stretch:
    """Rows with ``start <= time < stop``, in order of time and arrival, under the same marks."""

    start: int
    stop: int
    marks: int
    times: I64
    rows: I64

    def between(self, start: int, stop: int, marks: int | None = None) -> Stretch:
        """The part of it in ``[start, stop)``, without copying."""
        start, stop = max(start, self.start), min(stop, self.stop)
        low, high = position(self.times, start), position(self.times, stop)
        return Stretch(
            start,
            stop,
            self.marks if marks is None else marks,
            self.times[low:high],
            self.rows[low:high],
        )

    def where(self, kept: NDArray[np.bool_]) -> Stretch:
        """Some of its rows."""
        return Stretch(self.start, self.stop, self.marks, self.times[kept], self.rows[kept])


def clamped(times: Iterable[int]) -> I64:
    """Times as int64; those beyond its range as its ends.

    >>> clamped([-(2**70), 5]).tolist() == [-(2**63), 5]
    True
    """
    return np.array([min(max(t, LONG_AGO), LAST) for t in times], np.int64)


def position(times: I64, time: int) -> int:
    """How many of these ordered times lie before ``time``, which need not fit int64."""
    if not len(times) or time <= int(times[0]):
        return 0
    if time > int(times[-1]):  # as often: searching would let another thread go first
        return len(times)
    return int(np.searchsorted(times, time))


def in_order(stretches: Sequence[Stretch]) -> I64:
    """Their rows together, in order of time."""
    if len(stretches) < 2:
        return stretches[0].rows if stretches else np.empty(0, np.int64)
    rows = np.concatenate([stretch.rows for stretch in stretches])
    times = np.concatenate([stretch.times for stretch in stretches])
    if bool((times[1:] < times[:-1]).any()):
        rows = rows[np.lexsort((rows, times))]
    return rows


@dataclass(slots=True)
class HostWindow:
    """All stretches of a stream at a host.

    >>> host_window = HostWindow()
    >>> _ = host_window.add(Stretch(0, 10, 1, np.array([2, 7]), np.array([100, 101])))
    >>> [s.rows.tolist() for s in host_window.take_out(0, 5)], host_window.rows().tolist()
    ([[100]], [101])
    >>> host_window.gone
    5
    """

    stretches: list[Stretch] = field(default_factory=list)
    gone: int = LONG_AGO  # rows before it were given away; an index may still have them

    def __len__(self) -> int:
        return sum(len(stretch.rows) for stretch in self.stretches)

    def rows(self) -> I64:
        """All rows, in order of time."""
        return in_order(self.stretches)

    def add(self, more: Stretch) -> bool:
        """Take rows that are not here; False if an index may still have them from before."""
        fits = not len(more.times) or int(more.times[0]) >= self.gone
        if not fits:
            self.gone = LONG_AGO
        self.stretches.append(more)
        return fits

    def mark(self, start: int, stop: int, marks: int) -> list[tuple[int, int]]:
        """Rows in ``[start, stop)`` gain marks; returns the parts of it of which none are here."""
        missing, renewed = [(start, stop)], []
        for stretch in self.stretches:
            inside = stretch.between(start, stop, stretch.marks | marks)
            if inside.start >= inside.stop:
                renewed.append(stretch)
                continue
            pieces = (
                stretch.between(stretch.start, inside.start),
                inside,
                stretch.between(inside.stop, stretch.stop),
            )
            renewed += [piece for piece in pieces if piece.start < piece.stop]
            missing = [
                piece
                for low, high in missing
                for piece in ((low, min(high, inside.start)), (max(low, inside.stop), high))
                if piece[0] < piece[1]
            ]
        self.stretches = renewed
        return missing

    def find(self, start: int, stop: int, chosen: Chosen | None = None) -> list[Stretch]:
        """The rows in ``[start, stop)``, or those ``chosen`` among them."""
        parts = [stretch.between(start, stop) for stretch in self.stretches]
        found = [part for part in parts if part.start < part.stop]
        return found if chosen is None else [part.where(chosen(part.rows)) for part in found]

    def take_out(self, start: int, stop: int, chosen: Chosen | None = None) -> list[Stretch]:
        """Give up rows; `gone` says which an index may still have, unless some are `scattered`."""
        found = self.find(start, stop, chosen)
        left: list[Stretch] = []
        for stretch in self.stretches:
            inside = stretch.between(start, stop)
            if inside.start >= inside.stop:
                left.append(stretch)
                continue
            left += [
                piece
                for piece in (
                    stretch.between(stretch.start, inside.start),
                    stretch.between(inside.stop, stretch.stop),
                )
                if piece.start < piece.stop
            ]
            if chosen is not None:
                left.append(inside.where(~chosen(inside.rows)))
        self.stretches = [stretch for stretch in left if len(stretch.rows)]
        self.gone = max(self.gone, stop)
        return found

    def renumber(self, numbers: Callable[[I64], tuple[Bools, I64]]) -> None:
        """Rows have other numbers, or are gone: which there still are, and their numbers."""
        found = []
        for stretch in self.stretches:
            there, rows = numbers(stretch.rows)
            found.append(replace(stretch, times=stretch.times[there], rows=rows))
        self.stretches, self.gone = found, LONG_AGO

    @property
    def scattered(self) -> bool:
        """Whether rows are here that `gone` says are not: an index has to be made anew."""
        return any(len(s.times) and int(s.times[0]) < self.gone for s in self.stretches)

    def expire(self, horizon: int) -> None:
        """Drop stretches that end before a time."""
        self.stretches = [stretch for stretch in self.stretches if stretch.stop > horizon]

    def marks(self) -> int | None:
        """The marks of all rows, if they all have the same."""
        every = {stretch.marks for stretch in self.stretches}
        return every.pop() if len(every) == 1 else None

    def marks_at(self, times: I64) -> I64:
        """The marks of rows by their times, where stretches do not overlap."""
        ordered = sorted(self.stretches, key=lambda stretch: stretch.start)
        starts = clamped(stretch.start for stretch in ordered)
        marks = np.array([stretch.marks for stretch in ordered], np.int64)
        return marks[np.searchsorted(starts, times, "right") - 1]
