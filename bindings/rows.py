"""Rows of one stream as the kernels take them: times, operands, keys, and which rows can join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from numpy.typing import NDArray
from windjoin.checking import column_type
from windjoin.columns import has_nan
from windjoin.errors import SchemaError
from windjoin.evaluate import evaluate, holds
from windjoin.expressions import Column
from windjoin.kernels.spec import Bools, Rows
from windjoin.layout import gatherable_type
from windjoin.lowering import StreamPlan
from windjoin.operands import Recipe, encode, form_of
from windjoin.times import TimeColumn
from windjoin.wides import wide_column


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rows for the kernels, and which of them have no time (None: none)."""

    rows: Rows
    null_time: Bools | None = None


class StreamRows:
    """Makes the rows of one stream from its tables or batches."""

    def __init__(self, time: TimeColumn, plan: StreamPlan, schema: pa.Schema) -> None:
        self.time = time
        self._filters = list(plan.filters)
        self._columns = list(plan.columns)
        self._keys = list(plan.keys)
        self._wides = list(plan.wides)
        name = time.stream
        used = {time.column: None}
        for typed in [*self._filters, *(r.typed for r in (*plan.columns, *plan.keys))]:
            used |= {column.name: None for column in typed.node.columns()}
        for recipe in plan.wides:
            used |= {column.name: None for column in recipe.node.columns()}
        self._schema = schema
        self._bound_to = {name: schema}
        self._types: dict[str, pa.DataType] = {}
        self.require(used)
        self._direct = direct_columns(time, plan, schema)

    def prepare(self, data: pa.Table | pa.RecordBatch, first_row: int) -> Prepared:
        """Times, operands and keys of the rows of ``data``; ``first_row`` is for messages."""
        if not self._schema.equals(data.schema):
            self._check_types(data.schema)
        elif self._direct is not None:
            arrays = views(data, self._direct)
            if arrays is not None:
                return Prepared(Rows(arrays[0], *self._split(arrays[1:])))

        def fetch(column: Column) -> Any:
            return data.column(column.name)

        times, timed = self.time.read(data.column(self.time.column))
        live = timed
        for condition in self._filters:
            kept = holds(condition, fetch)
            live = kept if live is None else live & kept
        ticks = self.time.ticks(times, live, first_row)
        encoded = [
            self._encode(recipe, fetch, live, first_row) for recipe in (*self._columns, *self._keys)
        ]
        usable = live
        wides = [wide_column(recipe, fetch, first_row) for recipe in self._wides]
        for _, ok in [*encoded, *wides]:
            if ok is not None:
                usable = ok if usable is None else usable & ok
        arrays = [array for array, _ in encoded]
        rows = Rows(ticks, *self._split(arrays), [column for column, _ in wides], usable=usable)
        return Prepared(rows, None if timed is None else ~timed)

    def require(self, names: Iterable[str]) -> None:
        """Rows to come must have these columns, too, with the types the query was bound to."""
        for name in names:
            self._types[name] = column_type(Column(self.time.stream, name), self._bound_to)

    def plain_columns(self) -> list[tuple[str, np.dtype[Any]]] | None:
        """Time, operands and keys with their dtypes, if they are int64 or float64 as they lie."""
        if self._direct is None:
            return None
        fields = [self._schema.field(direct.number) for direct in self._direct]
        if not all(pat.is_int64(field.type) or pat.is_float64(field.type) for field in fields):
            return None
        return [(f.name, direct.dtype) for f, direct in zip(fields, self._direct, strict=True)]

    def _split(self, arrays: list[Any]) -> tuple[list[Any], list[Any]]:
        """Operand columns and keys."""
        count = len(self._columns)
        return arrays[:count], arrays[count:]

    @staticmethod
    def _encode(
        recipe: Recipe, fetch: Any, live: NDArray[np.bool_] | None, first_row: int
    ) -> tuple[Any, Bools | None]:
        return encode(recipe, evaluate(recipe.typed, fetch), live, first_row)

    def _check_types(self, schema: pa.Schema) -> None:
        for name, bound in self._types.items():
            given = column_type(Column(self.time.stream, name), {self.time.stream: schema})
            if given != bound and gatherable_type(given) != bound:
                raise SchemaError(
                    f"stream {self.time.stream!r}: column {name!r} is {given} but the query was"
                    f" bound to {bound}; cast it, or bind the query to this schema"
                )


@dataclass(frozen=True, slots=True)
class Direct:
    """A column that the kernels take as it lies: its number in the schema and its dtype."""

    number: int
    dtype: np.dtype[Any]


def direct_columns(time: TimeColumn, plan: StreamPlan, schema: pa.Schema) -> list[Direct] | None:
    """Time, operands and keys as they lie in a batch; None if any must be computed."""
    if time.ratio != 1 or plan.filters or plan.wides:
        return None
    columns = [_direct(Column(time.stream, time.column), schema, np.dtype(np.int64))]
    for recipe in (*plan.columns, *plan.keys):
        dtype = np.dtype(np.float64 if recipe.form == "float64" else np.int64)
        kind = recipe.typed.kind
        itself = recipe.form == form_of(kind) and recipe.step == kind.step
        columns.append(_direct(recipe.typed.node, schema, dtype) if itself else None)
    return None if None in columns else [column for column in columns if column]


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


def views(data: pa.Table | pa.RecordBatch, columns: list[Direct]) -> list[Any] | None:
    """Views of the data's own memory; None if chunks, a null or NaN ask for more."""
    count = data.num_rows
    if not count:
        return None
    arrays = []
    for direct in columns:
        column: Any = data.column(direct.number)
        if isinstance(column, pa.ChunkedArray):
            if column.num_chunks != 1:
                return None
            column = column.chunk(0)
        if column.null_count:
            return None
        values = np.frombuffer(column.buffers()[1], direct.dtype, count, column.offset * 8)
        if direct.dtype == np.float64 and has_nan(values):
            return None
        arrays.append(values)
    return arrays
