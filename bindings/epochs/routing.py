"""Which slot gets which rows: rows to units, units to slots.

A *unit* is what one slot owns at a time: a group of keys, a segment of the master's time.  A row
belongs to one unit or to a stretch of neighbouring ones, and is sent once to each slot that owns
any of them.  Every result has one member (any of its rows, or the master's) that belongs to one
unit only, so it is found by the owner of that unit and by nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from windjoin.arrow.hashing import hash_key
from windjoin.arrow.packing import less, more
from windjoin.arrow.routes import Copies
from windjoin.diffusion.stretches import I32
from windjoin.epochs.placing import Placed
from windjoin.kernels.spec import I64, Bools, Rows

EARLIEST = -(2**63)
GROUPS = 256  # of keys: slots own so many units in all
MOST_UNITS = 4096  # that are looked at one by one


class Span(NamedTuple):
    """The units of some rows: from ``low[i]`` up to and with ``high[i]``."""

    low: I64
    high: I64


@dataclass(frozen=True, slots=True)
class Units:
    """How rows are cut into units.

    ``keys``: groups of a key that is equal in all rows of a result; its number in each stream.
    ``length``: segments of so many ticks of the time of stream ``master``.  Neither: one unit.
    ``once``: "ctr" or "psp": segments of the time of every stream, whose rows are in one slot each.
    """

    windows: tuple[int, ...]
    keys: tuple[int, ...] | None = None
    length: int | None = None
    master: int = 0
    once: str | None = None

    def span(self, stream: int, rows: Rows, chosen: I64) -> Span:
        """The units of the ``chosen`` rows of a stream."""
        if self.keys is not None:
            hashes = hash_key(rows.keys[self.keys[stream]], chosen)
            groups = (hashes % np.uint64(GROUPS)).astype(np.int64)
            return Span(groups, groups)
        if self.length is None:
            nothing = np.zeros(len(chosen), np.int64)
            return Span(nothing, nothing)
        times = rows.time[chosen]
        if stream == self.master or self.once is not None:
            units = times // self.length
            return Span(units, units)
        # a master row joins what is up to W older, or newer by up to its own window
        low = less(times, self.windows[self.master]) // self.length
        return Span(low, more(times, self.windows[stream]) // self.length)

    def between(self, low: int, high: int) -> tuple[int, int]:
        """The units that rows with times from ``low`` to ``high`` can belong to."""
        if self.keys is not None:
            return 0, GROUPS - 1
        if self.length is None:
            return 0, 0
        longest = max(self.windows)
        first = max(EARLIEST, low - longest) // self.length
        return first, min(2**63 - 1, high + longest) // self.length

    def one_slot(self, stream: int) -> bool:
        """Whether each row of a stream is sent to one slot."""
        if self.keys is not None or self.length is None or self.once is not None:
            return True
        return stream == self.master

    def finds_in_one_slot(self, streams: Sequence[int]) -> bool:
        """Whether all results with certain rows of these streams are found in one slot."""
        if self.once is not None:
            return False
        return any(self.one_slot(stream) for stream in streams)

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        keys = None if self.keys is None else list(self.keys)
        return {"keys": keys, "length": self.length, "master": self.master, "once": self.once}

    @property
    def kind(self) -> str:
        """What units are."""
        if self.keys is not None:
            return "groups"
        return "single" if self.length is None else self.once or "atr"


@dataclass(frozen=True)
class Owners:
    """The owner of every unit: stretches of units, in each of which slots come in turn.

    ``stretches``: first unit and slots of each, ascending; the first begins before all units.

    >>> owners = Owners(((EARLIEST, (0, 1)), (10, (2,))))
    >>> owners.of(np.array([4, 5, 10, 11])).tolist()
    [0, 1, 2, 2]
    """

    stretches: tuple[tuple[int, tuple[int, ...]], ...]

    @classmethod
    def in_turn(cls, slots: int) -> Owners:
        """All slots in turn."""
        return cls(((EARLIEST, tuple(range(slots))),))

    @cached_property
    def _firsts(self) -> I64:
        return np.array([first for first, _ in self.stretches], np.int64)

    @cached_property
    def _turns(self) -> list[I32]:
        return [np.array(slots, np.int32) for _, slots in self.stretches]

    @property
    def slots(self) -> int:
        """One more than the highest slot."""
        return 1 + max(max(slots) for _, slots in self.stretches)

    def of(self, units: I64) -> I32:
        """The owner of each unit."""
        place = np.searchsorted(self._firsts, units, "right") - 1
        owners = np.empty(len(units), np.int32)
        for number, turn in enumerate(self._turns):
            own = place == number if len(self._turns) > 1 else slice(None)
            owners[own] = turn[units[own] % len(turn)]
        return owners

    def copies(self, span: Span, rows: I64) -> Copies:
        """Copies of ``rows``: one to each slot that owns a unit of theirs."""
        if span.low is span.high:
            return Copies(rows, self.of(span.low))
        codes, sets = self._sets(span)
        counts = np.array([len(one) for one in sets], np.int64)[codes]
        starts = np.cumsum([0, *map(len, sets)])[codes]
        flat = np.concatenate(sets) if sets else np.empty(0, np.int32)
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return Copies(np.repeat(rows, counts), flat[np.repeat(starts, counts) + within])

    def owned(self, span: Span, slot: int) -> Bools:
        """Which rows have a unit that the slot owns."""
        if span.low is span.high:
            owned: Bools = self.of(span.low) == slot
            return owned
        codes, sets = self._sets(span)
        return np.array([slot in one for one in sets], np.bool_)[codes]

    def _sets(self, span: Span) -> tuple[I64, list[I32]]:
        """Kinds of stretches of units by the slots that own them: of each row, and the slots.

        In turns of n slots, what owns ``[low, high]`` depends on ``low`` modulo n and on the length
        up to n only; so there are few kinds, however many rows and units there are.
        """
        first = np.searchsorted(self._firsts, span.low, "right") - 1
        last = np.searchsorted(self._firsts, span.high, "right") - 1
        lengths = np.array([len(turn) for turn in self._turns], np.int64)[first]
        wide = span.high // 4 - span.low // 4 >= 2**60  # the difference is more than int64 holds
        units = np.where(wide, 2**62, span.high - np.where(wide, span.high, span.low) + 1)
        units = np.where(first == last, np.minimum(units, lengths), units)
        starts = np.where(first == last, span.low % lengths, span.low)
        found, codes = np.unique(
            np.stack([first, last, starts, units]), axis=1, return_inverse=True
        )
        sets = [self._within(*column) for column in found.T.tolist()]
        return codes.reshape(-1).astype(np.int64), sets

    def _within(self, first: int, last: int, start: int, units: int) -> I32:
        found: set[int] = set()
        stop = start + units
        for number in range(first, last + 1):
            turn = self._turns[number]
            low = start if number == first else int(self._firsts[number])
            high = stop if number == last else int(self._firsts[number + 1])
            few = range(low, min(high, low + len(turn)))
            found.update(int(turn[unit % len(turn)]) for unit in few)
        return np.array(sorted(found), np.int32)

    def same(self, other: Owners, low: int, high: int) -> bool:
        """Whether both have the same owners from unit ``low`` to unit ``high``."""
        return self is other or self._clipped(low, high) == other._clipped(low, high)

    def _clipped(self, low: int, high: int) -> list[tuple[int, tuple[int, ...]]]:
        first = int(np.searchsorted(self._firsts, low, "right")) - 1
        last = int(np.searchsorted(self._firsts, high, "right"))
        kept = self.stretches[first:last]
        return [(max(low, start), slots) for start, slots in kept]

    def from_unit(self, unit: int, slots: Sequence[int]) -> Owners:
        """Other slots in turn from a unit on."""
        kept = [one for one in self.stretches if one[0] < unit]
        if kept and kept[-1][1] == tuple(slots):
            return Owners(tuple(kept))
        return Owners((*kept, (unit, tuple(slots))))

    def without(self, before: int) -> Owners:
        """The same without what only units before ``before`` ask for."""
        first = max(0, int(np.searchsorted(self._firsts, before, "right")) - 1)
        if not first:
            return self
        rest = self.stretches[first:]
        return Owners(((EARLIEST, rest[0][1]), *rest[1:]))

    def only(self, slots: int) -> Owners:
        """The same with none but the first ``slots`` slots: others hand theirs over."""
        return Owners(
            tuple((first, tuple(one % slots for one in turn)) for first, turn in self.stretches)
        )

    def told(self) -> list[Any]:
        """As JSON has it."""
        return [[first, list(slots)] for first, slots in self.stretches]

    @classmethod
    def heard(cls, told: Sequence[Any]) -> Owners:
        """From JSON."""
        return cls(tuple((first, tuple(slots)) for first, slots in told))


@dataclass(frozen=True, slots=True)
class Routes:
    """Units and their owners: how one epoch's rows were sent.

    ``placed``: where rows are in one slot each, what a router says of some of the units.
    """

    units: Units
    owners: Owners
    placed: Placed | None = None

    def copies(self, stream: int, rows: Rows, chosen: I64) -> Copies:
        """Copies of the ``chosen`` rows of a stream."""
        return self.owners.copies(self.units.span(stream, rows, chosen), chosen)

    def writers(self, stream: int, units: I64) -> I32:
        """Of rows that are stored once, the slots that write them."""
        known = self.known(stream, units)
        own = self.owners.of(known)
        return own if self.placed is None else self.placed.written[stream].over(known, own)

    def known(self, stream: int, units: I64) -> I64:
        """Units as a router knows them."""
        return units if self.placed is None else self.placed.written[stream].known(units)

    def first(self, stream: int, rows: Rows, chosen: I64) -> I32:
        """Of all slots that a row was sent to, the one whose copy counts."""
        return self.writers(stream, self.units.span(stream, rows, chosen).low)

    def owned(self, stream: int, rows: Rows, chosen: I64, slot: int) -> Bools:
        """Which rows a slot has, or would have, been sent."""
        span = self.units.span(stream, rows, chosen)
        if self.placed is None:
            return self.owners.owned(span, slot)
        owned: Bools = self.writers(stream, span.low) == slot
        return owned

    def same(self, other: Routes, low: int, high: int) -> bool:
        """Whether rows with times from ``low`` to ``high`` go where ``other`` sends them."""
        if self is other:
            return True
        if self.units != other.units:
            return False
        if self.placed is None and other.placed is None:
            return self.owners.same(other.owners, *self.units.between(low, high))
        assert self.units.length is not None
        first, last = low // self.units.length, high // self.units.length
        if last - first > MOST_UNITS:
            return False
        units = np.arange(first, last + 1)
        streams = range(len(self.units.windows))
        return all((self.writers(s, units) == other.writers(s, units)).all() for s in streams)

    def of_files(self, low: Sequence[int | None], high: Sequence[int | None]) -> Routes:
        """What is left to know of rows once they are in the log; by stream, their times."""
        if self.placed is None:
            return self
        length = self.units.length
        assert length is not None
        stretches = [
            None if a is None or b is None else (a // length, b // length)
            for a, b in zip(low, high, strict=True)
        ]
        return replace(self, placed=self.placed.of_files(stretches))

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        placed = None if self.placed is None else self.placed.told()
        return {"units": self.units.told(), "owners": self.owners.told(), "placed": placed}

    @classmethod
    def heard(cls, told: dict[str, Any], windows: tuple[int, ...]) -> Routes:
        """From JSON."""
        units, placed = told["units"], told.get("placed")
        keys = None if units["keys"] is None else tuple(units["keys"])
        return cls(
            Units(windows, keys, units["length"], units["master"], units["once"]),
            Owners.heard(told["owners"]),
            None if placed is None else Placed.heard(placed),
        )
