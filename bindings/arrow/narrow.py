"""Whole numbers in as few bytes as those of a segment need, on their way between hosts.

A segment has rows of one short stretch of time, so its times differ in their last bytes only, and
so do numbers of rows; keys are mostly small.  Such a column travels as the differences to its least
value, in one, two or four bytes each.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

WIDTHS = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32()}
FEWEST = 64  # rows for which it is worth it
Form = bytes  # a width and a least value for each column; empty if none is narrowed


def narrowed(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Form]:
    """The rows with narrow columns, and what `widened` needs to know.

    >>> rows = pa.record_batch({"t": pa.array(range(10**12, 10**12 + 100))})
    >>> narrow, form = narrowed(rows)
    >>> narrow.schema.field("t").type, widened(narrow, form, rows.schema) == rows
    (DataType(uint8), True)
    """
    if len(rows) < FEWEST:
        return rows, b""
    columns, widths, least = [], [], []
    for column in rows.columns:
        width, low, found = _narrow(column)
        columns.append(found)
        widths.append(width)
        least.append(low)
    if not any(widths):
        return rows, b""
    form = struct.pack(_layout(len(widths)), *widths, *least)
    return pa.RecordBatch.from_arrays(columns, schema=narrow_schema(rows.schema, form)), form


def widened(rows: pa.RecordBatch, form: Form, schema: pa.Schema) -> pa.RecordBatch:
    """The rows as they were."""
    if not form:
        return rows
    count = len(schema)
    numbers = struct.unpack(_layout(count), form)
    columns = [
        column if not width else _wide(column, low, field.type)
        for column, width, low, field in zip(
            rows.columns, numbers[:count], numbers[count:], schema, strict=True
        )
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def narrow_schema(schema: pa.Schema, form: Form) -> pa.Schema:
    """The schema in which rows of ``schema`` travel."""
    return schema if not form else _narrow_schema(schema, form[: len(schema)])


@lru_cache(maxsize=256)
def _narrow_schema(schema: pa.Schema, widths: bytes) -> pa.Schema:
    return pa.schema(
        [
            field.with_type(WIDTHS[width]) if width else field
            for field, width in zip(schema, widths, strict=True)
        ]
    )


def _layout(columns: int) -> str:
    return f"<{columns}B{columns}q"


def _wide_type(arrow: Any) -> Any:
    """The plain integers that values of a type are; None if they are none."""
    if pat.is_int64(arrow) or pat.is_timestamp(arrow) or pat.is_duration(arrow):
        return np.int64
    if pat.is_int32(arrow) or pat.is_date32(arrow):
        return np.int32
    return None


def _narrow(column: Any) -> tuple[int, int, Any]:
    """Width, least value and values; width 0 and the column itself if it stays as it is."""
    wide = _wide_type(column.type)
    if wide is None or column.null_count:
        return 0, 0, column
    size = np.dtype(wide).itemsize
    values = np.frombuffer(column.buffers()[1], wide)[column.offset : column.offset + len(column)]
    low, high = int(values.min()), int(values.max())
    width = next((w for w in WIDTHS if w < size and high - low < 1 << 8 * w), 0)
    if not width:
        return 0, 0, column
    found = (values - wide(low)).astype(f"u{width}")
    return width, low, pa.array(found)


def _wide(column: Any, low: int, arrow: Any) -> Any:
    wide = _wide_type(arrow)
    values = column.to_numpy().astype(wide)
    values += wide(low)
    return pa.Array.from_buffers(arrow, len(values), [None, pa.py_buffer(values)])
