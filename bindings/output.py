"""The joined result: its schema, and gathering its columns once, by row number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from windjoin.checking import Typed, check, column_type
from windjoin.columns import Values
from windjoin.errors import DataError, SchemaError
from windjoin.evaluate import counted_in, evaluate
from windjoin.expressions import Alias, Column, Expression
from windjoin.kernels.threads import in_threads
from windjoin.kinds import INT64_MAX, INT64_MIN, arrow_type, kind_of
from windjoin.layout import gatherable
from windjoin.operands import words
from windjoin.query import Query, output_name

MOST_PLACES = 76  # of an Arrow decimal256
ROWS_FOR_THREADS = 1 << 17  # results; for fewer, one thread gathers all columns
I64 = NDArray[np.int64]
# columns of one stream at row numbers: ``fetch(stream number, column names, rows)``
Fetch = Callable[[int, list[str], I64], list[Any]]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the result; ``typed`` is None for a column passed through as it is."""

    field: Any  # pyarrow.Field
    source: Expression
    typed: Typed | None


class Output:
    """The columns of the result of one bound query."""

    def __init__(self, query: Query, schemas: Mapping[str, pa.Schema]) -> None:
        self._names = query.names
        if query.select is None:
            self.columns = [
                OutputColumn(
                    field.with_name(f"{name}_{field.name}"), Column(name, field.name), None
                )
                for name in query.names
                for field in schemas[name]
            ]
        else:
            self.columns = [_selected(expression, schemas) for expression in query.select]
        names = [column.field.name for column in self.columns]
        for name in names:
            if names.count(name) > 1:
                sources = [repr(c.source) for c in self.columns if c.field.name == name]
                raise SchemaError(
                    f"the result would have {len(sources)} columns called {name!r}"
                    f" ({', '.join(sources)}); choose columns with select= and .alias"
                )
        self.schema = pa.schema([column.field for column in self.columns])
        self._needed = self._needed_columns()
        self._slowest_first = self._by_cost(schemas)

    def _needed_columns(self) -> list[list[str]]:
        used = {column.key: column for item in self.columns for column in item.source.columns()}
        return [
            [column.name for column in used.values() if column.stream == name]
            for name in self._names
        ]

    def _by_cost(self, schemas: Mapping[str, pa.Schema]) -> list[tuple[int, str]]:
        """(stream, column) of every column needed: those that threads should not begin last."""
        needed = [(s, name) for s, names in enumerate(self._needed) for name in names]

        def plain(place: tuple[int, str]) -> bool:
            stream, name = place
            return bool(pa.types.is_primitive(schemas[self._names[stream]].field(name).type))

        return sorted(needed, key=plain)

    @property
    def needed(self) -> list[list[str]]:
        """For every stream, the columns the result is made of: all others may stay behind."""
        return [list(names) for names in self._needed]

    def gather(self, fetch: Fetch, rows: Sequence[I64], threads: int = 1) -> pa.Table:
        """The result table for row numbers ``rows[stream]``, each column taken once."""
        taken = self._taken(fetch, rows, threads)

        def column(node: Column) -> Any:
            return taken[node.stream, node.name]

        arrays = [
            column(_plain(item.source)) if item.typed is None else _computed(item, column)
            for item in self.columns
        ]
        return pa.table(arrays, schema=self.schema)

    def _taken(self, fetch: Fetch, rows: Sequence[I64], threads: int) -> dict[tuple[str, str], Any]:
        """Every column needed, by the names of its stream and itself."""
        if threads > 1 and len(rows[0]) >= ROWS_FOR_THREADS:

            def one(stream: int, name: str) -> Any:
                return fetch(stream, [name], rows[stream])[0]

            arrays = in_threads(threads, one, self._slowest_first)
            return {
                (self._names[stream], name): array
                for (stream, name), array in zip(self._slowest_first, arrays, strict=True)
            }
        return {
            (self._names[stream], name): array
            for stream, names in enumerate(self._needed)
            if names
            for name, array in zip(names, fetch(stream, names, rows[stream]), strict=True)
        }


def table_fetch(tables: Sequence[pa.Table]) -> Fetch:
    """Row numbers served from whole tables, one for each stream."""

    tables = [gatherable(table) for table in tables]

    def fetch(stream: int, names: list[str], rows: I64) -> list[Any]:
        return [take(tables[stream].column(name), rows) for name in names]

    return fetch


def take(column: Any, rows: I64) -> Any:
    """The values of ``column`` at ``rows``, in as many chunks as their size asks for.

    Rows are the kernels' own, and looking whether they lie in the column would cost a fifth.
    """
    indices: Any = pa.array(rows)
    try:
        return pc.take(column, indices, boundscheck=False)
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        # more than 2 GiB of text do not fit one chunk with 32-bit offsets
        if len(rows) < 2:
            raise
        middle = len(rows) // 2
        halves = [take(column, rows[:middle]), take(column, rows[middle:])]
        chunks = [c for h in halves for c in (h.chunks if isinstance(h, pa.ChunkedArray) else [h])]
        return pa.chunked_array(chunks, column.type)


def _plain(expression: Expression) -> Column:
    while isinstance(expression, Alias):
        expression = expression.expression
    assert isinstance(expression, Column)
    return expression


def _selected(expression: Expression, schemas: Mapping[str, pa.Schema]) -> OutputColumn:
    name, inner = output_name(expression), expression
    while isinstance(inner, Alias):
        inner = inner.expression
    if isinstance(inner, Column):
        column_type(inner, schemas)
        return OutputColumn(schemas[inner.stream].field(inner.name).with_name(name), inner, None)
    typed = check(inner, schemas)
    places = len(str(typed.kind.step.denominator)) - 1
    if typed.kind.family == "decimal" and places > MOST_PLACES:
        raise SchemaError(
            f"select: `{inner!r}` has {places} decimal places, Arrow holds {MOST_PLACES};"
            " make it a float by / 1"
        )
    return OutputColumn(pa.field(name, arrow_type(typed.kind)), inner, typed)


def _computed(item: OutputColumn, column: Callable[[Column], Any]) -> Any:
    assert item.typed is not None
    values = evaluate(item.typed, column)
    missing = None if values.valid is None else ~values.valid
    arrow = item.field.type
    if item.typed.kind.family == "null":
        return pa.nulls(len(values.data))
    if not values.kind.exact:
        return pa.array(values.data, arrow, mask=missing)
    mantissas = counted_in(min(values.kind.step, kind_of(arrow).step), values)
    if item.typed.kind.family == "decimal":
        largest = 10**arrow.precision - 1
        mantissas = _fitting(item, mantissas, values, -largest, largest)
        data: Any = words(mantissas, arrow.bit_width // 64).data
        mask: Any = None if values.valid is None else np.packbits(values.valid, bitorder="little")
        buffers = [None if mask is None else pa.py_buffer(mask), pa.py_buffer(data)]
        return pa.Array.from_buffers(arrow, len(mantissas), buffers)
    mantissas = _fitting(item, mantissas, values, INT64_MIN, INT64_MAX).astype(np.int64, copy=False)
    return pa.array(mantissas, pa.int64(), mask=missing).view(arrow)


def _fitting(item: OutputColumn, mantissas: Any, values: Values, low: int, high: int) -> Any:
    """``mantissas`` if the result's type can hold them; 0 at nulls."""
    if mantissas.dtype == np.int64 and high >= INT64_MAX:
        return mantissas
    outside = np.asarray((mantissas > high) | (mantissas < low), np.bool_)
    rows = np.flatnonzero(outside if values.valid is None else outside & values.valid)
    if len(rows):
        raise DataError(
            f"select: `{item.source!r}`, result row {rows[0]}: value {mantissas[rows[0]]}"
            f"{'' if values.kind.step == 1 else f' times {values.kind.step}'} does not fit"
            f" {item.field.type}; select a smaller quantity, or make it a float"
        )
    return np.where(outside, 0, mantissas)
