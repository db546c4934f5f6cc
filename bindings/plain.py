"""Columns that compiled code reads from Arrow memory: numbers, texts, and lists of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from windjoin.expressions import Column
from windjoin.kernels.spec import ArrayColumn, BytesColumn, SetColumn
from windjoin.lowering import StreamPlan
from windjoin.operands import Recipe, form_of
from windjoin.times import TimeColumn
from windjoin.varlen import VarlenRecipe

INT64, FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
MANY = 4  # times as many columns as are read, and a few: reading would cost less than naming them
FEW = 8
ReadColumn = tuple[int, str, int, np.dtype[Any]]  # as `Reader` takes it


@dataclass(frozen=True, slots=True)
class Direct:
    """A column that needs no computation: its number in the schema, and how it lies there."""

    number: int
    form: str  # a form of `Reader`
    size: int  # bytes of a number or an offset, or the length of vectors
    dtype: np.dtype[Any]  # of what is read


def direct_columns(time: TimeColumn, plan: StreamPlan, schema: pa.Schema) -> list[Direct | None]:
    """Time, operands and keys as they are read from a batch; None: it must be computed."""
    timed = number_column(time.column, schema) if time.ratio == 1 else None
    return [timed, *(_direct(recipe, schema) for recipe in (*plan.columns, *plan.keys))]


def direct_sets(plan: StreamPlan, schema: pa.Schema) -> list[Direct | None]:
    """Lists of integers that are sets, and vectors; None: it must be computed."""
    return [_direct_set(r, schema) or _direct_vector(r, schema) for r in plan.all_varlen]


def _direct(recipe: Recipe, schema: pa.Schema) -> Direct | None:
    node, kind = recipe.typed.node, recipe.typed.kind
    if not isinstance(node, Column) or recipe.form != form_of(kind) or recipe.step != kind.step:
        return None
    if recipe.form == "bytes":
        arrow = schema.field(node.name).type
        size = 8 if pat.is_large_string(arrow) or pat.is_large_binary(arrow) else 4
        plain = size == 8 or pat.is_string(arrow) or pat.is_binary(arrow)
        number = schema.get_field_index(node.name)
        return Direct(number, "texts", size, np.dtype(np.uint8)) if plain else None
    return number_column(node.name, schema) if recipe.form in ("int64", "float64") else None


def number_column(name: str, schema: pa.Schema) -> Direct | None:
    """A column of numbers as it lies; None if it has no numbers of 64 bits or fewer."""
    arrow, number = schema.field(name).type, schema.get_field_index(name)
    if _is_int64(arrow):
        return Direct(number, "as they lie", 8, INT64)
    if pat.is_float64(arrow):
        return Direct(number, "as they lie", 8, FLOAT64)
    if pat.is_float32(arrow):
        return Direct(number, "reals", 4, FLOAT64)
    if pat.is_int8(arrow) or pat.is_int16(arrow) or pat.is_int32(arrow):
        return Direct(number, "integers", arrow.bit_width // 8, INT64)
    if pat.is_date32(arrow) or pat.is_time32(arrow):
        return Direct(number, "integers", 4, INT64)
    if pat.is_uint8(arrow) or pat.is_uint16(arrow) or pat.is_uint32(arrow):
        return Direct(number, "naturals", arrow.bit_width // 8, INT64)
    if pat.is_decimal128(arrow) or pat.is_decimal256(arrow):
        return Direct(number, "decimals", arrow.bit_width // 8, INT64)
    return None


def _is_int64(arrow: pa.DataType) -> bool:
    """Whether values lie as int64, whatever they mean."""
    temporal = pat.is_timestamp(arrow) or pat.is_duration(arrow) or pat.is_time64(arrow)
    return pat.is_int64(arrow) or temporal or pat.is_date64(arrow)


def _direct_vector(recipe: VarlenRecipe, schema: pa.Schema) -> Direct | None:
    node = recipe.node
    if recipe.form not in ("float32", "float64", "uint8") or not isinstance(node, Column):
        return None
    arrow, dtype = schema.field(node.name).type, np.dtype(recipe.form)
    if not pat.is_fixed_size_list(arrow) or not arrow.list_size:
        return None
    if not arrow.value_type.equals(pa.from_numpy_dtype(dtype)):
        return None
    return Direct(schema.get_field_index(node.name), "vectors", arrow.list_size, dtype)


def _direct_set(recipe: VarlenRecipe, schema: pa.Schema) -> Direct | None:
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
    return Direct(schema.get_field_index(node.name), "lists", 0, dtype)


def read_column(one: Direct) -> ReadColumn:
    """A column as compiled code reads it."""
    return one.number, one.form, one.size, one.dtype


def key_of(read: Any) -> Any:
    """A key of what a `Reader` gives, as the kernels take it."""
    return BytesColumn(*read) if isinstance(read, tuple) else read


def wide_of(direct: Direct | None, read: Any) -> SetColumn | ArrayColumn:
    """A wide column of what a `Reader` gives, as the kernels take it."""
    if not isinstance(read, tuple):  # it was computed
        computed: SetColumn | ArrayColumn = read
        return computed
    offsets, values = read
    if direct is None or direct.form != "lists":
        return ArrayColumn(offsets, values)
    first, last = offsets[0], offsets[-1]
    starts = offsets.astype(np.int64)
    return SetColumn(starts - first if first else starts, values[first:last].astype(np.int64))
