"""Where routers place segments whose rows are stored once, and who reads which of them for whom.

The log is shared, so no slot has to hold a segment to read it.  One slot *writes* the rows of a
segment; others *read* what a hop asks them for: of earlier epochs from that slot's files, of the
epoch itself from a copy that came over the exchange, or, from the second hop on, from its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from windjoin.diffusion.stretches import I32
from windjoin.kernels.spec import I64

NOBODY = -1


@dataclass(frozen=True)
class UnitSlots:
    """A slot for each of some neighbouring units; `NOBODY`: not said.

    >>> UnitSlots(4, (0, 1, 1)).over(np.array([3, 4, 6, 7]), np.full(4, 9, np.int32)).tolist()
    [9, 0, 1, 9]
    """

    first: int = 0
    slots: tuple[int, ...] = ()

    @property
    def stop(self) -> int:
        """One more than the last unit."""
        return self.first + len(self.slots)

    @cached_property
    def _table(self) -> I32:
        return np.array(self.slots, np.int32)

    def over(self, units: I64, otherwise: I32) -> I32:
        """The slots of units; those given where none is said."""
        inside = (units >= self.first) & (units < self.stop)
        if not inside.any():
            return otherwise
        found = self._table[np.where(inside, units - self.first, 0)]
        return np.where(inside & (found != NOBODY), found, otherwise)

    def known(self, units: I64) -> I64:
        """Earlier and later units count as the first and the last."""
        return np.clip(units, self.first, self.stop - 1)

    def within(self, low: int, high: int) -> UnitSlots:
        """Of the units from ``low`` to ``high`` alone."""
        first, last = self.known(np.array([low, high])).tolist()
        return UnitSlots(first, self.slots[first - self.first : last + 1 - self.first])

    def told(self) -> list[Any]:
        """As JSON has it: the first unit, then slots and how often they follow each other."""
        return [self.first, *([slot, len(list(same))] for slot, same in groupby(self.slots))]

    @classmethod
    def heard(cls, told: Sequence[Any]) -> UnitSlots:
        """From JSON."""
        first, *runs = told
        return cls(first, tuple(slot for slot, count in runs for _ in range(count)))


@dataclass(frozen=True, slots=True)
class HopPath:
    """How the rows of a stream in one unit become results."""

    stream: int
    unit: int
    order: int  # its place in `Placed.orders`
    readers: tuple[UnitSlots, ...]  # by hop: who reads which units of the stream that it adds


@dataclass(frozen=True)
class Placed:
    """What a router says of segments; earlier and later ones go where the first and last do.

    ``written``: by stream, the slots that write rows; no stream is without.
    ``copies``: (stream, unit, slots) that get new rows of a unit as well, as first hops read them.
    ``orders``: in which order streams are probed; number s is that of stream s where no path says.
    """

    written: tuple[UnitSlots, ...]
    copies: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    orders: tuple[tuple[int, ...], ...] = ()
    paths: tuple[HopPath, ...] = ()

    def of_files(self, stretches: Sequence[tuple[int, int] | None]) -> Placed:
        """What is left to know of rows once they are in the log, by stream of these units."""
        own = zip(self.written, stretches, strict=True)
        return Placed(tuple(w.within(*((w.first,) * 2 if s is None else s)) for w, s in own))

    def paths_of(self, stream: int) -> Paths:
        """Those of the rows of a stream."""
        return self._paths[stream]

    @cached_property
    def _paths(self) -> list[Paths]:
        return [
            Paths(sorted((p for p in self.paths if p.stream == s), key=lambda path: path.unit))
            for s in range(len(self.written))
        ]

    @cached_property
    def more(self) -> list[dict[int, tuple[int, ...]]]:
        """By stream and unit the slots that get copies."""
        found: list[dict[int, tuple[int, ...]]] = [{} for _ in self.written]
        for stream, unit, slots in self.copies:
            found[stream][unit] = slots
        return found

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        paths = [[p.stream, p.unit, p.order, [r.told() for r in p.readers]] for p in self.paths]
        return {
            "written": [one.told() for one in self.written],
            "copies": self.copies,
            "orders": self.orders,
            "paths": paths,
        }

    @classmethod
    def heard(cls, told: dict[str, Any]) -> Placed:
        """From JSON."""
        return cls(
            tuple(UnitSlots.heard(one) for one in told["written"]),
            tuple((stream, unit, tuple(slots)) for stream, unit, slots in told["copies"]),
            tuple(tuple(order) for order in told["orders"]),
            tuple(
                HopPath(stream, unit, order, tuple(UnitSlots.heard(one) for one in readers))
                for stream, unit, order, readers in told["paths"]
            ),
        )


def copies_for(
    orders: Sequence[Sequence[int]], paths: Sequence[HopPath]
) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """The copies of new rows that first hops read, for `Placed.copies`."""
    found: dict[tuple[int, int], set[int]] = {}
    for path in paths:
        target, readers = orders[path.order][1], path.readers[0]
        for unit, slot in enumerate(readers.slots, readers.first):
            if slot != NOBODY:
                found.setdefault((target, unit), set()).add(slot)
    return tuple((*at, tuple(sorted(slots))) for at, slots in sorted(found.items()))


class Paths:
    """The paths of the rows of one stream, by unit."""

    def __init__(self, known: Sequence[HopPath]) -> None:
        self.known = known
        self._units = np.array([path.unit for path in known], np.int64)

    def numbers(self, units: I64) -> I64:
        """Which path the rows of units take; -1 where none is said."""
        if not self.known:
            return np.full(len(units), -1, np.int64)
        own = np.clip(units, self._units[0], self._units[-1])
        place = np.searchsorted(self._units, own)
        return np.where(self._units[place] == own, place, -1)
