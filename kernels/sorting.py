"""Usable rows of a whole table in time order, whatever order they came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from windjoin.kernels.spec import F64, I64, ArrayColumn, BytesColumn, Rows, SetColumn
from windjoin.kernels.varlen import VarlenRows, slice_varlen, take_bytes, take_varlen
from windjoin.pyx.base.column import in_order
from windjoin.pyx.base.pieces import sorting, taken


@dataclass
class Sorted:
    """Usable rows of a stream in time order, and where each came from."""

    time: I64
    columns: list[I64 | F64]
    keys: list[I64 | BytesColumn]
    origin: I64 | None  # original row numbers; None: they are these
    varlen: list[VarlenRows] = field(default_factory=list)
    contents: Sequence[SetColumn | ArrayColumn] = ()  # of the wide columns, not in time order

    def part(self, first: int, last: int) -> list[I64 | BytesColumn]:
        """Keys of rows [first, last)."""
        return [
            BytesColumn(key.offsets[first : last + 1], key.data)
            if isinstance(key, BytesColumn)
            else key[first:last]
            for key in self.keys
        ]

    def part_varlen(self, first: int, last: int) -> list[SetColumn | ArrayColumn]:
        """Wide columns of rows [first, last)."""
        if self.origin is None:
            return [slice_varlen(content, first, last) for content in self.contents]
        return [take_varlen(content, self.origin[first:last]) for content in self.contents]


def in_time_order(rows: Rows, varlen_rows: Sequence[VarlenRows] = ()) -> Sorted:
    """Drop unusable rows and sort the rest by time; equal times stay in order of arrival."""
    origin: I64 | None = None
    time = rows.time
    if rows.usable is not None and not rows.usable.all():
        origin = np.flatnonzero(rows.usable).astype(np.int64)
        time = time[origin]
    if not in_order(time):
        order, time = sorting(time)
        origin = order if origin is None else taken(origin, order)
    if origin is None:
        return Sorted(time, rows.columns, rows.keys, None, list(varlen_rows), rows.varlen)
    columns = [taken(column, origin) for column in rows.columns]
    varlen = [wide.take(origin) for wide in varlen_rows]
    return Sorted(time, columns, take_keys(rows.keys, origin), origin, varlen, rows.varlen)


def take_keys(keys: Sequence[I64 | BytesColumn], rows: I64) -> list[I64 | BytesColumn]:
    """Some rows of key columns, or all in another order."""
    return [
        take_bytes(key, rows) if isinstance(key, BytesColumn) else taken(key, rows) for key in keys
    ]
