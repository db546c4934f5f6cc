"""Wide columns (sets, vectors, bytes) as the kernels hold them: a start and a length per row.

A start is an address; `VarlenRows.memory` keeps what it points at.  Reordering rows moves no
content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.keys import new_space
from windjoin.kernels.spec import (
    I64,
    ArrayColumn,
    Bools,
    BytesColumn,
    JoinSpec,
    Rows,
    SetColumn,
    VarlenSpec,
)
from windjoin.pyx.base.column import Ring
from windjoin.pyx.encoding.keys import KeySpace, encode_dense
from windjoin.pyx.encoding.varlen import contents, set_varlen_rows, weighted_varlen_rows
from windjoin.pyx.live.contents import Contents

ABSENT = -1  # length of a row that joins without a value


@dataclass(slots=True)
class VarlenRows:
    """Rows of one wide column."""

    start: I64
    length: NDArray[np.int32]
    memory: tuple[Any, ...]

    def take(self, at: Any) -> VarlenRows:
        """Some of the rows, or all in another order."""
        return VarlenRows(self.start[at], self.length[at], self.memory)

    @property
    def nbytes(self) -> int:
        """Bytes that the rows keep alive."""
        return sum(int(part.nbytes) for part in self.memory)


class VarlenRings:
    """A wide column of a live window: rings of starts and lengths, and what they point at."""

    def __init__(self, capacity: int) -> None:
        self.start = Ring(np.int64, capacity)
        self.length = Ring(np.int32, capacity)
        self.contents = Contents()

    def retain(self, rows: I64, first: int, capacity: int, weighted: bool, itemsize: int) -> None:
        """Keep some rows, which are now those from ``first`` on; their content is copied."""
        length = self.length.take(rows)
        # a weighted set is its norm, weights, codes and places
        words = np.where(length >= 0, 1 + 2 * length, 0).astype(np.int32) if weighted else length
        kind = {1: np.uint8, 4: np.int32, 8: np.float64}[8 if weighted else itemsize]
        offsets, content = contents(self.start.take(rows), words, kind)
        start = content.__array_interface__["data"][0] + offsets[:-1] * content.itemsize
        for ring, values in ((self.start, start), (self.length, length)):
            ring.resize(capacity, 0, 0)
            ring.put(first, values)
        self.contents.clear()
        self.contents.add(first + len(rows), content)

    def stored(self, rows: I64) -> VarlenRows:
        """Rows that are here, by number; their content stays where it is."""
        return VarlenRows(self.start.take(rows), self.length.take(rows), ())


def take_bytes(column: BytesColumn, rows: I64) -> BytesColumn:
    """Some of the keys, or all in another order, by one vectorised copy."""
    offsets, at = _gathered(column.offsets, rows)
    return BytesColumn(offsets, column.data[at])


def take_varlen(column: SetColumn | ArrayColumn, rows: I64) -> SetColumn | ArrayColumn:
    """Some of the rows, or all in another order, with their contents."""
    absent = None if column.absent is None else column.absent[rows]
    if isinstance(column, ArrayColumn) and (even := _of_one_length(column)) is not None:
        offsets = np.arange(len(rows) + 1) * even.shape[1]
        return ArrayColumn(offsets, even[rows].reshape(-1), absent)
    offsets, at = _gathered(column.offsets, rows)
    if isinstance(column, ArrayColumn):
        return ArrayColumn(offsets, column.values[at], absent)
    items = column.items
    taken = take_bytes(items, at) if isinstance(items, BytesColumn) else items[at]
    valid = None if column.valid is None else column.valid[at]
    weights = None if column.weights is None else column.weights[at]
    return SetColumn(offsets, taken, valid, weights, absent)


def slice_varlen(column: SetColumn | ArrayColumn, first: int, last: int) -> SetColumn | ArrayColumn:
    """Rows [first, last), arrays where they lie."""
    if isinstance(column, ArrayColumn):
        offsets = column.offsets[first : last + 1]
        absent = None if column.absent is None else column.absent[first:last]
        return ArrayColumn(offsets - offsets[0], column.values[offsets[0] : offsets[-1]], absent)
    return take_varlen(column, np.arange(first, last))


def slice_rows(rows: Rows, first: int, last: int) -> Rows:
    """Rows [first, last), arrays where they lie."""
    keys = [
        BytesColumn(key.offsets[first : last + 1], key.data)
        if isinstance(key, BytesColumn)
        else key[first:last]
        for key in rows.keys
    ]
    return Rows(
        rows.time[first:last],
        [column[first:last] for column in rows.columns],
        keys,
        [slice_varlen(wide, first, last) for wide in rows.varlen],
        None if rows.usable is None else rows.usable[first:last],
        None if rows.present is None else rows.present[first:last],
        rows.parts and [part and slice_rows(part, first, last) for part in rows.parts],
    )


def spread_varlen(spec: JoinSpec, rows: Sequence[Rows], most: int) -> list[list[VarlenRows]]:
    """The wide columns of up to so many rows of each stream, spread evenly over the usable ones."""
    some = []
    for stream in rows:
        usable = np.arange(len(stream)) if stream.usable is None else np.flatnonzero(stream.usable)
        few = np.linspace(0, max(len(usable) - 1, 0), min(len(usable), most)).astype(np.int64)
        varlen = [take_varlen(wide, usable[few]) for wide in stream.varlen]
        some.append(Rows(stream.time[usable[few]], varlen=varlen))
    return encode_varlen(spec, some)


def _of_one_length(column: ArrayColumn) -> NDArray[Any] | None:
    """The rows as a table, whose rows are copied whole; None if their lengths differ."""
    offsets = column.offsets
    if len(offsets) < 2 or bool((np.diff(offsets) != offsets[1] - offsets[0]).any()):
        return None
    table: NDArray[Any] = column.values[offsets[0] : offsets[-1]].reshape(len(offsets) - 1, -1)
    return table


def _gathered(offsets: I64, rows: I64) -> tuple[I64, I64]:
    """The offsets of some of the rows in a copy of their own, and where its values come from."""
    lengths = offsets[rows + 1] - offsets[rows]
    own = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=own[1:])
    return own, np.repeat(offsets[rows] - own[:-1], lengths) + np.arange(own[-1])


def encode_varlen(spec: JoinSpec, rows: Sequence[Rows]) -> list[list[VarlenRows]]:
    """Records of all wide columns of a batch, per stream."""
    codes: dict[tuple[int, int], NDArray[np.int32]] = {}
    spaces: dict[int, list[tuple[int, int]]] = {}
    for s, stream in enumerate(spec.streams):
        for number, wide in enumerate(stream.varlen):
            if wide.space >= 0:
                spaces.setdefault(wide.space, []).append((s, number))
    for places in spaces.values():
        kind = spec.streams[places[0][0]].varlen[places[0][1]].items
        columns = [rows[s].varlen[number] for s, number in places]
        codes |= dict(zip(places, _encode_items(columns, kind), strict=True))
    return [
        [
            _varlen_rows(column, codes.get((s, number)))
            for number, column in enumerate(stream.varlen)
        ]
        for s, stream in enumerate(rows)
    ]


def live_varlen_rows(
    varlen: Sequence[VarlenSpec],
    columns: Sequence[SetColumn | ArrayColumn],
    spaces: Mapping[int, KeySpace],
    usable: Bools | None,
) -> list[VarlenRows]:
    """Records of the wide columns of one push, in memory of their own."""
    made = []
    for wide, column in zip(varlen, columns, strict=True):
        if isinstance(column, ArrayColumn):
            first, last = int(column.offsets[0]), int(column.offsets[-1])
            values = column.values[first:last].copy()
            own = ArrayColumn(column.offsets - first, values, column.absent)
            made.append(_varlen_rows(own, None))
            continue
        valid = column.valid
        if usable is not None:  # items of rows that can match nothing need no code
            of_usable = np.repeat(usable, np.diff(column.offsets))
            valid = of_usable if valid is None else valid & of_usable
        made.append(_varlen_rows(column, spaces[wide.space].encode(column.items, valid)))
    return made


def _encode_items(columns: Sequence[Any], kind: str) -> list[NDArray[np.int32]]:
    if kind == "int64":
        filled = [column.items for column in columns if len(column.items)]
        low = min((int(items.min()) for items in filled), default=0)
        high = max((int(items.max()) for items in filled), default=-1)
        if high - low <= 4 * sum(map(len, filled)) + 1024:  # close together: no dictionary needed
            return [encode_dense(column.items, low, column.valid) for column in columns]
    space = new_space(kind)
    return [space.encode(column.items, column.valid) for column in columns]


def _varlen_rows(column: SetColumn | ArrayColumn, codes: NDArray[np.int32] | None) -> VarlenRows:
    varlen_rows = _present_varlen_rows(column, codes)
    if column.absent is not None:
        varlen_rows.length[column.absent] = ABSENT
    return varlen_rows


def _present_varlen_rows(
    column: SetColumn | ArrayColumn, codes: NDArray[np.int32] | None
) -> VarlenRows:
    if isinstance(column, ArrayColumn):
        values = np.ascontiguousarray(column.values)
        address = values.__array_interface__["data"][0]
        start = address + column.offsets[:-1] * values.itemsize
        return VarlenRows(start, np.diff(column.offsets).astype(np.int32), (values,))
    assert codes is not None, "a set column has codes"
    if column.weights is None:
        start, length = set_varlen_rows(column.offsets, codes)
        return VarlenRows(start, length, (codes,))
    start, length, memory = weighted_varlen_rows(column.offsets, codes, column.weights)
    return VarlenRows(start, length, (memory,))
