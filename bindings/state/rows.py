"""Rows of one stream as a section of a unit of state, and back: see `windjoin.state.unit`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.kernels.spec import (
    I64,
    ArrayColumn,
    BytesColumn,
    Rows,
    SetColumn,
    StreamSpec,
    VarlenSpec,
)
from windjoin.kernels.stored import VALUES
from windjoin.kernels.window import LONG_AGO

AT_A_TIME = 1 << 17  # rows that are made ready to be written together
PAYLOAD = "column."
SAME = b"windjoin.same"  # metadata: which columns have the values of those that are left out
KEYS: dict[str, Any] = {"int64": pa.int64(), "bytes": pa.large_binary()}
NUMBERS: dict[str, Any] = {"int64": pa.int64(), "float64": pa.float64()}


def row_fields(spec: StreamSpec) -> list[Any]:
    """The columns that the kernels need of rows of a stream."""
    fields: list[Any] = [pa.field("time", pa.int64())]
    fields += [pa.field(f"operand.{k}", NUMBERS[one]) for k, one in enumerate(spec.columns)]
    fields += [pa.field(f"key.{k}", KEYS[one]) for k, one in enumerate(spec.keys)]
    for k, wide in enumerate(spec.varlen):
        plain: Any = VALUES.get(wide.form)
        item = KEYS[wide.items] if plain is None else pa.from_numpy_dtype(plain)
        fields.append(pa.field(f"wide.{k}", pa.large_list(item)))
        if wide.form == "weighted":
            fields.append(pa.field(f"wide.{k}.weights", pa.large_list(pa.float64())))
        fields.append(pa.field(f"wide.{k}.absent", pa.bool_()))
    return fields


def plain_columns(spec: StreamSpec) -> list[str]:
    """The names of those columns if all of them are numbers, else none."""
    fields = row_fields(spec)
    plain = all(field.type in (pa.int64(), pa.float64()) for field in fields)
    return [field.name for field in fields] if plain else []


def row_arrays(rows: Rows) -> list[Any]:
    """The arrays of those columns; of rows that match nothing the time says so."""
    time = rows.time if rows.usable is None else np.where(rows.usable, rows.time, LONG_AGO)
    arrays: list[Any] = [pa.array(time), *(pa.array(column) for column in rows.columns)]
    arrays += [_keys(key) for key in rows.keys]
    for wide in rows.varlen:
        offsets: Any = pa.array(wide.offsets)
        if isinstance(wide, ArrayColumn):
            arrays.append(pa.LargeListArray.from_arrays(offsets, pa.array(wide.values)))
        else:
            arrays.append(pa.LargeListArray.from_arrays(offsets, _keys(wide.items)))
            if wide.weights is not None:
                weights = pa.array(wide.weights)
                arrays.append(pa.LargeListArray.from_arrays(offsets, weights))
        absent = wide.absent if wide.absent is not None else np.zeros(len(rows), np.bool_)
        arrays.append(pa.array(absent))
    return arrays


def rows_of(spec: StreamSpec, batch: pa.RecordBatch) -> Rows:
    """Rows for the kernels, of a batch of a section; arrays where they lie."""
    columns = kernel_columns(batch)
    time = columns["time"].to_numpy()
    usable = time != LONG_AGO
    return Rows(
        time,
        [columns[f"operand.{k}"].to_numpy() for k in range(len(spec.columns))],
        [_values(columns[f"key.{k}"]) for k in range(len(spec.keys))],
        [_varlen(one, f"wide.{k}", columns) for k, one in enumerate(spec.varlen)],
        None if bool(usable.all()) else usable,
    )


def kernel_columns(batch: pa.RecordBatch) -> dict[str, Any]:
    """The columns of a batch by name, with those that lie there under another one."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    same = json.loads((batch.schema.metadata or {}).get(SAME, b"{}"))
    for name, other in same.items():
        columns[name] = pa.array(integers_of(columns[other]))
    return columns


def payload_of(batch: pa.RecordBatch, names: Sequence[str], schema: pa.Schema) -> pa.Table:
    """The user's columns among those of a batch of a section."""
    arrays = [batch.column(PAYLOAD + name) for name in names]
    return pa.Table.from_arrays(arrays, schema=pa.schema([schema.field(n) for n in names]))


def integers_of(column: Any) -> I64:
    """The int64 of an array that holds such, whatever they mean; anything where it has nulls.

    >>> integers_of(pa.array([5, 7, None])[1:]).tolist()
    [7, 0]
    """
    memory: Any = column.buffers()[1] or b""
    return np.frombuffer(memory, np.int64)[column.offset : column.offset + len(column)]


def whole_array(column: Any) -> Any:
    """A column in one piece."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    whole: Any = column.combine_chunks()
    return whole


def _keys(values: Any) -> Any:
    if not isinstance(values, BytesColumn):
        return pa.array(values)
    memory: list[Any] = [values.offsets, values.data]
    buffers = [None, *map(pa.py_buffer, memory)]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def _values(array: Any) -> Any:
    if not pa.types.is_large_binary(array.type):
        return array.to_numpy()
    _, _, data = array.buffers()
    return BytesColumn(_offsets(array), np.frombuffer(data or b"", np.uint8))


def _offsets(array: Any) -> Any:
    buffer = array.buffers()[1]
    if buffer is None or not buffer.size:
        return np.zeros(1, np.int64)
    return np.frombuffer(buffer, np.int64)[array.offset : array.offset + len(array) + 1]


def _varlen(spec: VarlenSpec, name: str, columns: dict[str, Any]) -> SetColumn | ArrayColumn:
    offsets = _offsets(columns[name])
    offsets = offsets - offsets[0]  # of the items of these rows alone
    items = columns[name].flatten()
    mask = columns[f"{name}.absent"].to_numpy(zero_copy_only=False)
    absent = mask if bool(mask.any()) else None
    if spec.form in VALUES:
        return ArrayColumn(offsets, items.to_numpy(), absent)
    weights = None
    if spec.form == "weighted":
        weights = columns[f"{name}.weights"].flatten().to_numpy()
    return SetColumn(offsets, _values(items), None, weights, absent)
