"""The joined result: its schema, and gathering its columns once, by row number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from windjoin.arrays import as_array
from windjoin.checking import Typed, check, column_type
from windjoin.columns import Values
from windjoin.errors import DataError, SchemaError
from windjoin.evaluate import Known, evaluate, raising_call
from windjoin.expressions import Alias, Column, Expression
from windjoin.function_nodes import PairFunction
from windjoin.kernels.threads import in_threads
from windjoin.kinds import INT64_MAX, INT64_MIN, arrow_type
from windjoin.layout import gatherable, has_dictionary, taken
from windjoin.measures import has_kernel
from windjoin.pyx.base.pieces import listen
from windjoin.query import Query
from windjoin.query_checks import output_name

MOST_PLACES = 76  # of an Arrow decimal256
ROWS_FOR_THREADS = 1 << 17  # results; for fewer, one thread gathers all columns
LEAST_AT_ONCE = 1 << 10  # rows of results, that are gathered or computed without looking up
MOST_AT_ONCE = 1 << 22
BYTES_AT_ONCE = 1 << 27
I64 = NDArray[np.int64]
Taken = Mapping[tuple[str, str], Any]  # arrays by the names of streams and columns
# columns of one stream at row numbers: ``fetch(stream number, column names, rows)``
Fetch = Callable[[int, list[str], I64], list[Any]]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the result; ``typed`` is None for a column passed through as it is."""

    field: Any  # pyarrow.Field
    source: Expression
    typed: Typed | None


class ResultColumns:
    """The columns of the result of one bound query."""

    def __init__(
        self,
        query: Query,
        schemas: Mapping[str, pa.Schema],
        score: Callable[[PairFunction], int],
    ) -> None:
        """``score`` gives the number of the score that a measure is."""
        self._names = query.names
        if query.select is None:
            self.columns = [
                OutputColumn(
                    field.with_name(f"{name}_{field.name}"), Column(name, field.name), None
                )
                for name in query.given
                for field in schemas[name]
            ]
        else:
            self.columns = [_selected(expression, schemas) for expression in query.select]
        if query.sides.keep:
            self.columns = [_nullable(query, column) for column in self.columns]
        names = [column.field.name for column in self.columns]
        for name in names:
            if names.count(name) > 1:
                sources = [repr(c.source) for c in self.columns if c.field.name == name]
                raise SchemaError(
                    f"the result would have {len(sources)} columns called {name!r}"
                    f" ({', '.join(sources)}); choose columns with select= and .alias"
                )
        self.schema = pa.schema([column.field for column in self.columns])
        measures = [node for item in self.columns for node in _measures(item.source)]
        if query.sides.combined(len(query.streams)):
            measures = []  # the kernels give combinations that come of several joins, without
        self._scores = {node.key: score(node) for node in measures}
        self._needed = self._by_stream(self._gathered)
        self._slowest_first = self._by_cost(schemas)

    def _by_stream(self, columns: Callable[[Expression], Iterable[Column]]) -> list[list[str]]:
        """For every stream, some columns of what is selected."""
        used = {column.key: column for item in self.columns for column in columns(item.source)}
        return [
            [column.name for column in used.values() if column.stream == name]
            for name in self._names
        ]

    def _gathered(self, expression: Expression) -> Iterator[Column]:
        """Columns whose values the result is made of: scores come from the kernels."""
        if isinstance(expression, Column):
            yield expression
        elif expression.key not in self._scores:
            for part in expression.parts:
                yield from self._gathered(part)

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

    def score_of(self, item: OutputColumn) -> int | None:
        """The number of the score that an item is, as it is; None if it is anything else."""
        source = item.source
        while isinstance(source, Alias):
            source = source.expression
        return self._scores.get(source.key)

    @property
    def read(self) -> list[list[str]]:
        """For every stream, these and the columns that scores are computed from."""
        return self._by_stream(lambda expression: expression.columns())

    def gather(
        self, fetch: Fetch, rows: Sequence[I64], threads: int = 1, scores: Sequence[Values] = ()
    ) -> pa.Table:
        """The result table for row numbers ``rows[stream]``, each column taken once."""
        taken = self._taken(fetch, rows, threads)
        known = {key: scores[number] for key, number in self._scores.items()}
        arrays = []
        for item in self.columns:
            plain = plain_column(item)
            if plain is not None:
                arrays.append(taken[plain.stream, plain.name])
            elif len(rows[0]) <= MOST_AT_ONCE:
                arrays.append(_computed(item, taken, known, 0))
            else:
                arrays.append(_computed_in_pieces(item, taken, known, len(rows[0])))
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
    at_once = _rows_at_once(column, len(rows))
    if at_once < len(rows):
        listen()
        return _in_halves(column, rows)
    indices: Any = pa.array(rows)
    try:
        return pc.take(column, indices, boundscheck=False)
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        if has_dictionary(column.type) and column.num_chunks > 1:
            return taken(column, rows)
        # more than 2 GiB of text do not fit one chunk with 32-bit offsets
        if len(rows) < 2:
            raise
        return _in_halves(column, rows)


def _rows_at_once(column: Any, rows: int) -> int:
    """So many that Arrow, which hears of no interrupt, has them in a fraction of a second."""
    if rows <= LEAST_AT_ONCE:
        return rows
    of_bytes: int = BYTES_AT_ONCE * len(column) // (column.nbytes + 1)
    return max(LEAST_AT_ONCE, min(MOST_AT_ONCE, of_bytes))


def _in_halves(column: Any, rows: I64) -> Any:
    middle = len(rows) // 2
    halves = [take(column, rows[:middle]), take(column, rows[middle:])]
    chunks = [c for h in halves for c in (h.chunks if isinstance(h, pa.ChunkedArray) else [h])]
    return pa.chunked_array(chunks, column.type)


def plain_column(item: OutputColumn) -> Column | None:
    """The column that is passed through as it is; None if the item is computed."""
    source = item.source
    while isinstance(source, Alias):
        source = source.expression
    return source if item.typed is None and isinstance(source, Column) else None


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


def _nullable(query: Query, column: OutputColumn) -> OutputColumn:
    """The column as it is where its streams may have no row in a result."""
    streams = map(query.names.index, column.source.streams)
    lacking = any(query.sides.may_lack(stream) for stream in streams)
    return replace(column, field=column.field.with_nullable(True)) if lacking else column


def _measures(expression: Expression) -> Iterator[PairFunction]:
    """The measures in an expression that the kernels know."""
    if isinstance(expression, PairFunction) and has_kernel(expression):
        yield expression
    for part in expression.parts:
        yield from _measures(part)


def _computed_in_pieces(item: OutputColumn, taken: Taken, known: Known, rows: int) -> Any:
    """A computed column, some rows at a time: interrupts are heard between them."""
    pieces = []
    for first in range(0, rows, MOST_AT_ONCE):
        listen()
        some = {key: array.slice(first, MOST_AT_ONCE) for key, array in taken.items()}
        of_some = {key: values.part(first, first + MOST_AT_ONCE) for key, values in known.items()}
        pieces.append(_computed(item, some, of_some, first))
    return pa.chunked_array(pieces, item.field.type)


def _computed(item: OutputColumn, taken: Taken, known: Known, first: int) -> Any:
    """A computed column of results from number ``first`` on."""
    assert item.typed is not None

    def column(node: Column) -> Any:
        return taken[node.stream, node.name]

    values = evaluate(item.typed, column, known)
    if values.raised is not None and values.raised.any():
        from windjoin.functions import function_error

        row = int(np.argmax(values.raised))
        call = raising_call(item.typed, lambda node: column(node).slice(row, 1))
        raise function_error(call, f"select: result row {first + row}")
    arrow = item.field.type
    low, high = INT64_MIN, INT64_MAX
    if item.typed.kind.family == "decimal":
        high = 10**arrow.precision - 1
        low = -high
    return as_array(values, arrow, lambda m: _fitting(item, m, values, low, high, first))


def _fitting(
    item: OutputColumn, mantissas: Any, values: Values, low: int, high: int, first: int
) -> Any:
    """``mantissas`` if the result's type can hold them; 0 at nulls."""
    if mantissas.dtype == np.int64 and high >= INT64_MAX:
        return mantissas
    outside = np.asarray((mantissas > high) | (mantissas < low), np.bool_)
    rows = np.flatnonzero(outside if values.valid is None else outside & values.valid)
    if len(rows):
        raise DataError(
            f"select: `{item.source!r}`, result row {first + rows[0]}: value {mantissas[rows[0]]}"
            f"{'' if values.kind.step == 1 else f' times {values.kind.step}'} does not fit"
            f" {item.field.type}; select a smaller quantity, or make it a float"
        )
    return np.where(outside, 0, mantissas)
