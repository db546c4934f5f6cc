"""Who reads which stored rows for whom, where rows are stored once and partial results travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from windjoin.arrow.routes import Copies
from windjoin.diffusion.stretches import I32
from windjoin.epochs.placing import UnitSlots
from windjoin.epochs.routing import Routes, Span
from windjoin.kernels.spec import I64, Bools

MOST_KINDS = 1 << 20  # that are told apart without sorting


@dataclass(frozen=True)
class Reading:
    """Which rows of a stream a slot joins with partial results: for each of these one slot does.

    ``asked``: the ways of those that ask, by who reads what; who has written it, where that is not
    said.
    """

    routes: Routes
    stream: int
    slot: int
    asked: tuple[UnitSlots | None, ...] = (None,)

    def of(self, units: I64, readers: UnitSlots | None) -> I32:
        """The slots that read rows of these units."""
        known = self.routes.known(self.stream, units)
        own = self.routes.writers(self.stream, known)
        return own if readers is None else readers.over(known, own)

    def own(self, units: I64) -> Bools:
        """Whether this slot does, for any that ask."""
        if self._known is None:
            owned: Bools = np.logical_or.reduce(self._each(units), axis=0)
            return owned
        first, _, own = self._known
        return own[self.routes.known(self.stream, units) - first]

    def each(self, units: I64) -> Bools:
        """Whether this slot does, for each way."""
        if self._known is None:
            return self._each(units)
        first, each, _ = self._known
        return each[:, self.routes.known(self.stream, units) - first]

    def _each(self, units: I64) -> Bools:
        return np.stack([self.of(units, readers) == self.slot for readers in self.asked])

    @cached_property
    def _known(self) -> tuple[int, Bools, Bools] | None:
        """The first unit that a router knows, and of all that it does `each` and `own`.

        It is asked for every file of the window, and there may be a way for each segment.
        """
        if self.routes.placed is None:
            return None
        written = self.routes.placed.written[self.stream]
        each = self._each(np.arange(written.first, written.stop))
        return written.first, each, np.logical_or.reduce(each, axis=0)


@dataclass(frozen=True, slots=True)
class Meeting:
    """To which slots partial results travel: all that read rows they can meet."""

    routes: Routes
    first: int  # the stream that they began with
    hop: int
    target: int

    def meeting(self, low: I64, high: I64, began: I64) -> Copies:
        """For results that meet ``[low, high]``; ``began``: the times of their first rows."""
        length, placed = self.routes.units.length, self.routes.placed
        assert length is not None
        span = Span(low // length, high // length)
        if placed is None:
            return self.routes.owners.copies(span, np.arange(len(low)))
        if not len(low):
            return Copies(np.empty(0, np.int64), np.empty(0, np.int32))
        paths = placed.paths_of(self.first)
        known = [self.routes.known(self.target, units) for units in span]
        kinds, codes = _kinds([paths.numbers(began // length), *known])
        sets: list[I64] = []
        for number in dict.fromkeys(kinds[:, 0].tolist()):  # ascending, as they are
            own = kinds[kinds[:, 0] == number]
            readers = paths.known[number].readers[self.hop] if number >= 0 else None
            sets += self._between(readers, own[:, 1], own[:, 2])
        return spread(sets, codes)

    def _between(self, readers: UnitSlots | None, low: I64, high: I64) -> list[I64]:
        """The slots that read any unit of some stretches."""
        first = int(low.min())
        units = np.arange(first, int(high.max()) + 1)
        slots, places = np.unique(
            Reading(self.routes, self.target, -1).of(units, readers), return_inverse=True
        )
        before = np.zeros((len(units) + 1, len(slots)), np.int64)
        np.cumsum(places[:, None] == np.arange(len(slots)), axis=0, out=before[1:])
        there = before[high - first + 1] > before[low - first]
        return [slots[own] for own in there]


def _kinds(columns: Sequence[I64]) -> tuple[I64, I64]:
    """The different rows of some columns, ascending by the first, and which of these each row is.

    >>> kinds, codes = _kinds([np.array([7, 7, 5]), np.array([1, 1, 2])])
    >>> kinds.tolist(), codes.tolist()
    ([[5, 2], [7, 1]], [1, 1, 0])
    """
    codes, room = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low, size = int(column.min()), int(column.max()) - int(column.min()) + 1
        if size > MOST_KINDS:
            values, column = np.unique(column, return_inverse=True)
            low, size = 0, len(values)
        codes, room = codes * size + (column - low), room * size
        if room > MOST_KINDS:
            values, codes = np.unique(codes, return_inverse=True)
            room = len(values)
    there = np.zeros(room, np.bool_)
    there[codes] = True
    codes = (np.cumsum(there) - 1)[codes]
    firsts = np.empty(int(there.sum()), np.int64)
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]
    return np.stack([column[firsts] for column in columns], axis=1), codes


def spread(sets: Sequence[I64], codes: I64) -> Copies:
    """Row i to all slots of set ``codes[i]``."""
    ends = np.cumsum([0, *map(len, sets)])
    flat = np.concatenate(sets).astype(np.int32)
    counts = np.diff(ends)[codes]
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return Copies(
        np.repeat(np.arange(len(codes)), counts), flat[np.repeat(ends[codes], counts) + within]
    )
