"""Columns that the kernels take as they lie in Arrow memory: numbers, and lists of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from windjoin.expressions import Column
from windjoin.kernels.spec import ArrayColumn, SetColumn
from windjoin.lowering import StreamPlan
from windjoin.operands import form_of
from windjoin.pyx.tables import Reader
from windjoin.times import TimeColumn
from windjoin.wides import WideRecipe

LISTS = -1


@dataclass(frozen=True, slots=True)
class Direct:
    """A column that the kernels take as it lies: its number in the schema and its dtype."""

    number: int
    dtype: np.dtype[Any]
    width: int = 0  # of a vector; 0: a number, -1: a list of numbers


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
    return Direct(schema.get_field_index(node.name), dtype, LISTS)


def reader(direct: list[Direct] | None, wides: list[Direct] | None) -> Reader | None:
    """Reads all columns of a stream from the memory of a table; None if any must be computed."""
    if direct is None or wides is None:
        return None
    return Reader([(one.number, one.dtype, one.width) for one in (*direct, *wides)])


def wide_of(direct: Direct, offsets: Any, values: Any) -> SetColumn | ArrayColumn:
    """A wide column of what a `Reader` gives, as the kernels take it with whole tables."""
    if direct.width != LISTS:
        return ArrayColumn(offsets, values)
    first, last = offsets[0], offsets[-1]
    starts = offsets.astype(np.int64)
    return SetColumn(starts - first if first else starts, values[first:last].astype(np.int64))
