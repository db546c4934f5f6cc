"""Columns that the kernels take as they lie in Arrow memory: numbers, and lists of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from windjoin.columns import has_nan
from windjoin.expressions import Column
from windjoin.kernels.spec import ArrayColumn, SetColumn
from windjoin.lowering import StreamPlan
from windjoin.operands import form_of
from windjoin.times import TimeColumn
from windjoin.wides import WideRecipe


@dataclass(frozen=True, slots=True)
class Direct:
    """A column that the kernels take as it lies: its number in the schema and its dtype."""

    number: int
    dtype: np.dtype[Any]
    width: int = -1  # of a vector


def direct_columns(time: TimeColumn, plan: StreamPlan, schema: pa.Schema) -> list[Direct] | None:
    """Time, operands and keys as they lie in a batch; None if any must be computed."""
    if time.ratio != 1 or plan.filters:
        return None
    columns = [_direct(Column(time.stream, time.column), schema, np.dtype(np.int64))]
    for recipe in (*plan.columns, *plan.keys):
        dtype = np.dtype(np.float64 if recipe.form == "float64" else np.int64)
        kind = recipe.typed.kind
        itself = recipe.form == form_of(kind) and recipe.step == kind.step
        columns.append(_direct(recipe.typed.node, schema, dtype) if itself else None)
    return None if None in columns else [column for column in columns if column]


def direct_sets(plan: StreamPlan, schema: pa.Schema) -> list[Direct] | None:
    """Lists of integers that are sets, and vectors; None if any wide column is something else."""
    wides = [_direct_set(r, schema) or _direct_vector(r, schema) for r in plan.wides]
    return None if None in wides else [column for column in wides if column]


def _direct_vector(recipe: WideRecipe, schema: pa.Schema) -> Direct | None:
    node = recipe.node
    if recipe.form not in ("float32", "float64", "uint8") or not isinstance(node, Column):
        return None
    arrow, dtype = schema.field(node.name).type, np.dtype(recipe.form)
    if not pat.is_fixed_size_list(arrow) or not arrow.list_size:
        return None
    if not arrow.value_type.equals(pa.from_numpy_dtype(dtype)):
        return None
    return Direct(schema.get_field_index(node.name), dtype, arrow.list_size)


def _direct(node: Any, schema: pa.Schema, dtype: np.dtype[Any]) -> Direct | None:
    if not isinstance(node, Column):
        return None
    arrow = schema.field(node.name).type
    same = pat.is_float64(arrow) if dtype == np.float64 else _is_int64(arrow)
    return Direct(schema.get_field_index(node.name), dtype) if same else None


def _is_int64(arrow: pa.DataType) -> bool:
    """Whether values lie as int64, whatever they mean."""
    temporal = pat.is_timestamp(arrow) or pat.is_duration(arrow) or pat.is_time64(arrow)
    return pat.is_int64(arrow) or temporal or pat.is_date64(arrow)


def _direct_set(recipe: WideRecipe, schema: pa.Schema) -> Direct | None:
    node, item = recipe.node, recipe.item
    if recipe.form != "set" or not isinstance(node, Column) or item is None:
        return None
    arrow = schema.field(node.name).type
    if not pat.is_list(arrow) or not (
        pat.is_int32(arrow.value_type) or _is_int64(arrow.value_type)
    ):
        return None
    if item.form != "int64" or item.step != item.typed.kind.step or item.rule != "fits":
        return None
    dtype = np.dtype(np.int32 if pat.is_int32(arrow.value_type) else np.int64)
    return Direct(schema.get_field_index(node.name), dtype)


def views(data: pa.Table | pa.RecordBatch, columns: list[Direct]) -> list[Any] | None:
    """Views of the data's own memory; None if chunks, a null or NaN ask for more."""
    count = data.num_rows
    if not count:
        return None
    arrays = []
    for direct in columns:
        column = _one(data, direct.number)
        if column is None:
            return None
        values = np.frombuffer(column.buffers()[1], direct.dtype, count, column.offset * 8)
        if direct.dtype == np.float64 and has_nan(values):
            return None
        arrays.append(values)
    return arrays


def set_views(data: pa.Table | pa.RecordBatch, columns: list[Direct]) -> list[Any] | None:
    """Of every column of lists, (offsets, items) in the data's own memory; None as `views`."""
    sets = []
    for direct in columns:
        column = _one(data, direct.number)
        if column is None:
            return None
        if direct.width >= 0:
            vectors = _vectors(column, direct)
            if vectors is None:
                return None
            sets.append(vectors)
            continue
        _, offsets, without, items = column.buffers()
        if without is not None or items is None or not items.size:
            return None
        values = column.values
        begin = values.offset * direct.dtype.itemsize
        where = np.frombuffer(offsets, np.int32, data.num_rows + 1, column.offset * 4)
        sets.append((where, np.frombuffer(items, direct.dtype, len(values), begin)))
    return sets


def wide_of(direct: Direct, offsets: Any, values: Any) -> SetColumn | ArrayColumn:
    """A wide column of what `set_views` gives, as the kernels take it with whole tables."""
    if direct.width >= 0:
        return ArrayColumn(offsets, values)
    first, last = offsets[0], offsets[-1]
    starts = offsets.astype(np.int64)
    return SetColumn(starts - first if first else starts, values[first:last].astype(np.int64))


def _vectors(column: Any, direct: Direct) -> tuple[Any, Any] | None:
    values = column.values
    if values.null_count:
        return None
    count = len(column) * direct.width
    begin = (values.offset + column.offset * direct.width) * direct.dtype.itemsize
    numbers = np.frombuffer(values.buffers()[1], direct.dtype, count, begin)
    if direct.dtype.kind == "f" and has_nan(numbers):
        return None
    return np.arange(0, count + 1, direct.width), numbers


def _one(data: pa.Table | pa.RecordBatch, number: int) -> Any:
    """The array of a column, if it is one and nothing of it is null."""
    column: Any = data.column(number)
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks != 1:
            return None
        column = column.chunk(0)
    return None if column.null_count else column
