"""The live window of one stream: its rows by arrival number, and the indexes over them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.side import ROW_NUMBER, Codes, Side
from windjoin.kernels.spec import F64, I64, StreamSpec
from windjoin.kernels.varlen import VarlenRings, VarlenRows
from windjoin.pyx.base.column import ColumnView, Ring
from windjoin.pyx.base.pieces import sorting
from windjoin.pyx.encoding.varlen import mark_codes, renumber_codes
from windjoin.pyx.live.store import Extent

if TYPE_CHECKING:
    from windjoin.kernels.access import Access

FIRST_ROWS = 256
MOST_ROWS = 2**32  # of a window: live equality indexes keep the last 32 bits of row numbers
LONG_AGO = -(2**63)


@dataclass(slots=True)
class Arrivals:
    """Rows of one push that can be part of a result, ordered by time."""

    rows: I64  # arrival numbers
    time: I64
    columns: list[I64 | F64]
    codes: list[Codes]
    varlen: list[VarlenRows] = field(default_factory=list)

    def take(self, at: NDArray[Any]) -> Arrivals:
        """Some of them, or all in another order."""
        return Arrivals(
            self.rows[at],
            self.time[at],
            [column[at] for column in self.columns],
            [codes[at] for codes in self.codes],
            [wide.take(at) for wide in self.varlen],
        )


class Window(Side):
    """Rows [head, tail) by arrival number, in rings that grow and shrink with the window."""

    def __init__(self, spec: StreamSpec, numbered: bool) -> None:
        super().__init__(spec)
        self.extent = Extent()
        self.accesses: list[Access] = []
        self._time = Ring(np.int64, FIRST_ROWS)
        self._columns = [Ring(dtype, FIRST_ROWS) for dtype in spec.columns]
        self._codes = [Ring(np.int32, FIRST_ROWS) for _ in spec.keys]
        self._numbers = Ring(np.int64, FIRST_ROWS) if numbered else None
        self._varlen = [VarlenRings(FIRST_ROWS) for _ in spec.varlen]
        self._rings = [self._time, *self._columns, *self._codes]
        self._rings += [ring for wide in self._varlen for ring in (wide.start, wide.length)]
        if self._numbers is not None:
            self._rings.append(self._numbers)

    @property
    def head(self) -> int:
        """The oldest row that is here."""
        return self.extent.head

    @property
    def tail(self) -> int:
        """The number of the next row."""
        return self.extent.tail

    @property
    def rings(self) -> tuple[Ring, list[Ring], list[Ring], Ring | None]:
        """Times, operands, codes of keys, row numbers."""
        return self._time, self._columns, self._codes, self._numbers

    @property
    def wide_rings(self) -> list[VarlenRings]:
        """Starts and lengths of wide columns, and what they point at."""
        return self._varlen

    def view(self, number: int) -> ColumnView:
        if number == ROW_NUMBER:
            assert self._numbers is not None, "row numbers were not asked for"
            return self._numbers
        return self._columns[number]

    def values(self, number: int, rows: I64) -> NDArray[Any]:
        return self._columns[number].take(rows)

    def varlen_view(self, number: int) -> tuple[ColumnView, ColumnView]:
        return self._varlen[number].start, self._varlen[number].length

    def code_view(self, key: int) -> ColumnView:
        return self._codes[key]

    @property
    def time_view(self) -> ColumnView:
        return self._time

    def __len__(self) -> int:
        return self.tail - self.head

    @property
    def nbytes(self) -> int:
        """Bytes allocated for rows and indexes."""
        rings = sum(ring.nbytes for ring in self._rings)
        contents = sum(wide.contents.nbytes for wide in self._varlen)
        return rings + contents + self.index_bytes

    @property
    def index_bytes(self) -> int:
        """Bytes allocated for indexes."""
        pairs = sum(space.nbytes for spaces in self.pair_spaces.values() for space in spaces)
        return pairs + sum(index.nbytes for index in self.indexes.values())

    def empty_copy(self) -> Window:
        """The same rows, shared, with indexes of its own: the part of them that one host holds."""
        other = copy(self)
        other.extent = self.extent.copy()
        other.indexes, other.pair_spaces, other.accesses = {}, {}, []
        other.extent.head = other.extent.tail  # none of the rows is the copy's yet
        return other

    def stored(self, rows: I64) -> Arrivals:
        """Rows that are here, by arrival number, as `insert` takes them."""
        return Arrivals(
            rows,
            self._time.take(rows),
            [ring.take(rows) for ring in self._columns],
            [ring.take(rows) for ring in self._codes],
            [wide.stored(rows) for wide in self._varlen],
        )

    def stored_codes(self, key: int, rows: I64) -> Codes:
        """Codes of a key of rows that are here."""
        codes: Codes = self._codes[key].take(rows)
        return codes

    def times(self, rows: I64) -> I64:
        """Times of rows that are here."""
        return self._time.take(rows)

    def times_held(self) -> I64:
        """Times of all rows, of those that match nothing `LONG_AGO`."""
        times: I64 = self._time.get(self.head, len(self))
        return times

    def serve(self, access: Access) -> None:
        """Keep the index of ``access`` from now on; rows that are here already are put into it."""
        if access.identity in self.indexes:
            return
        index = self.indexes[access.identity] = access.start(self)
        self.accesses.append(access)
        if len(self):
            arrivals = self.stored(np.arange(self.head, self.tail))
            time = arrivals.time
            if not bool((time[1:] >= time[:-1]).all()) or time[0] == LONG_AGO:
                arrivals = arrivals.take(np.flatnonzero(time != LONG_AGO))
                arrivals = arrivals.take(sorting(arrivals.time)[0])
            index.insert_arrays(access.values(self, arrivals), arrivals.time, arrivals.rows)

    def keep(self, wanted: Iterable[Hashable]) -> None:
        """Drop the indexes of all accesses but those with these identities."""
        kept = set(wanted)
        self.accesses = [access for access in self.accesses if access.identity in kept]
        for identity in self.indexes.keys() - kept:
            del self.indexes[identity]
            self.pair_spaces.pop(identity, None)

    def make_room(self, n: int) -> None:
        """Let the rings hold n rows more."""
        if len(self) + n > self._time.capacity:
            self._resize(len(self) + n)

    def insert(self, arrivals: Arrivals) -> None:
        """Put stored rows into the indexes."""
        for access in self.accesses:
            index = self.indexes[access.identity]
            index.insert_arrays(access.values(self, arrivals), arrivals.time, arrivals.rows)

    def before(self, time: int) -> int:
        """How many of the oldest rows are before a time."""
        return self._time.first_alive(self.head, self.tail, time) - self.head

    def settle(self) -> None:
        """Give back what is not needed for the rows that are here."""
        self.extent.settle()
        self.shrink()

    def shrink(self) -> None:
        """Give back the room of rings that are mostly empty, and were so after the last pushes."""
        if 8 * (self.extent.most + FIRST_ROWS) < self._time.capacity:
            self._resize(2 * self.extent.most)

    def codes_alive(self, key: int) -> Codes:
        """Codes of a key that rows of the window have; -1 among them."""
        codes: Codes = self._codes[key].get(self.head, len(self))
        return codes

    def mark_items(self, wide: int, live: NDArray[np.uint8]) -> None:
        """Set ``live`` of every code of an item that rows of the window have."""
        weighted = self.spec.varlen[wide].form == "weighted"
        mark_codes(*self.varlen_view(wide), self.head, self.tail, weighted, live)

    def retain(self, rows: I64) -> None:
        """Keep only some rows, by number in order: they become the last ones before ``tail``.

        Indexes that have others are to be dropped before.
        """
        first, capacity = self.tail - len(rows), FIRST_ROWS
        while capacity < len(rows):
            capacity *= 2
        wide = {id(ring) for one in self._varlen for ring in (one.start, one.length)}
        for number, one in enumerate(self._varlen):
            spec = self.spec.varlen[number]
            itemsize = {"float32": 4, "float64": 8, "uint8": 1}.get(spec.form, 4)
            one.retain(rows, first, capacity, spec.form == "weighted", itemsize)
        for ring in reversed(self._rings):
            if id(ring) not in wide:
                values = ring.take(rows)
                ring.resize(capacity, 0, 0)
                ring.put(first, values)
        self.extent.head = first
        self.extent.settle()

    def blank(self, kept: I64) -> None:
        """Let all rows but some, by number, match nothing; indexes are not told."""
        gone = np.ones(len(self), np.bool_)
        gone[kept - self.head] = False
        rows = np.flatnonzero(gone) + self.head
        self._time.fill(rows, LONG_AGO)
        for ring in self._codes:
            ring.fill(rows, -1)

    def clear(self) -> None:
        """Let all rows go; indexes, which are all by one key, keep their room."""
        self.extent.head = self.extent.tail
        for index in self.indexes.values():
            index.clear()

    def renumber(self, spaces: Mapping[int, Codes]) -> None:
        """Give rows other codes, by space; indexes by the old ones are gone."""
        for key, space in enumerate(self.spec.spaces):
            self._codes[key].renumber(self.head, self.tail, spaces[space])
        for number, wide in enumerate(self.spec.varlen):
            if wide.space >= 0:
                weighted = wide.form == "weighted"
                views = self.varlen_view(number)
                renumber_codes(*views, self.head, self.tail, weighted, spaces[wide.space])

    def compact(self) -> None:
        """Drop expired rows for good, and composite keys that no row has any more."""
        for access in self.accesses:
            live = self.indexes[access.identity].compact()
            spaces = self.pair_spaces.get(access.identity, [])
            for number in reversed(range(len(spaces))):
                spaces[number].compact(live)
                if number:
                    live = spaces[number].first_codes(spaces[number - 1].n_codes)

    def _resize(self, rows: int) -> None:
        if rows > MOST_ROWS:
            raise MemoryError(
                f"a window of {rows} rows is more than the {MOST_ROWS} that a stream may have;"
                " choose a shorter one"
            )
        capacity = FIRST_ROWS
        while capacity < rows:
            capacity *= 2
        for ring in reversed(self._rings):  # that of the times last: it says what there is room for
            ring.resize(capacity, self.head, self.tail)
