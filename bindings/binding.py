"""A query bound to its streams' schemas: what the kernels are told, and rows ready for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from windjoin.asof import looks_away
from windjoin.checking import Typed
from windjoin.errors import QueryError, SchemaError, hint, quoted
from windjoin.evaluate import holds, raising_call
from windjoin.expressions import Column
from windjoin.kernels.functions import RAISED
from windjoin.kernels.spec import I64, Call, JoinSpec, Nearest, Opaque, Similarity, StreamSpec
from windjoin.layout import gatherable_schema
from windjoin.lowering import Lowering
from windjoin.measures import score_values
from windjoin.output import Fetch, ResultColumns, table_fetch
from windjoin.query import Query
from windjoin.row_windows import RowWindow
from windjoin.stream_rows import Prepared, StreamRows
from windjoin.times import TimeColumn, TimeUnit, clock_of, time_column, window_ticks
from windjoin.watermarks import promise_ticks

PlainColumns = tuple[list[tuple[str, np.dtype[Any]]], list[tuple[str, np.dtype[Any], int]]]

__all__ = ["BoundQuery", "Prepared"]


class BoundQuery:
    """A query that fits the schemas of its streams; made by `Query.bind`.

    >>> import pyarrow as pa
    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    >>> bound = wj.join(a, b, on=a["k"] == b["k"]).bind({"a": schema, "b": schema})
    >>> bound.schema.names
    ['a_t', 'a_k', 'b_t', 'b_k']
    >>> bound.spec.streams[0].window
    10
    """

    def __init__(
        self, query: Query, schemas: Mapping[str, pa.Schema], clock: TimeUnit | None = None
    ) -> None:
        """``clock``: what times count, where other queries share it; else the finest there is."""
        _check_streams(query.names, schemas)
        schemas = {name: gatherable_schema(schema) for name, schema in schemas.items()}
        self.query = query
        self.schemas = schemas
        self.clock: TimeUnit = clock or clock_of(query.streams, schemas)
        lowering = Lowering(query.names, schemas)
        for number, stream in enumerate(query.streams):
            for condition in stream.conditions:
                lowering.where(number, condition)
        for condition in query.on:
            lowering.add(condition)
        self.output = ResultColumns(query, schemas, lowering.score)
        lowering.finish()
        self._opaque = lowering.opaque
        self._plans = lowering.plans
        self._streams = self._stream_rows()
        self.spec: JoinSpec = JoinSpec(
            self._stream_specs(),
            tuple(lowering.predicates),
            query.exclude_self,
            _nearest(query, lowering),
            tuple(lowering.scores),
            query.sides.kept(len(query.streams)),
        )

    def _stream_rows(self) -> list[StreamRows]:
        return [
            StreamRows(time_column(s, self.clock, self.schemas), plan, self.schemas[s.name])
            for s, plan in zip(self.query.streams, self._plans, strict=True)
        ]

    def _stream_specs(self) -> tuple[StreamSpec, ...]:
        return tuple(
            StreamSpec(
                stream.name,
                0
                if looks_away(self.query, number)
                else window_ticks(stream, self.clock, self.query.closed),
                plan.dtypes(),
                plan.key_forms(),
                tuple(plan.spaces),
                plan.wide_specs(),
                stream.window.count if isinstance(stream.window, RowWindow) else 0,
            )
            for number, (stream, plan) in enumerate(
                zip(self.query.streams, self._plans, strict=True)
            )
        )

    def without_scores(self) -> BoundQuery:
        """The same for who wants row numbers alone: nothing is made of rows for scores."""
        if not self.spec.scores:
            return self
        other = copy(self)
        other._plans = [plan.without_scores() for plan in self._plans]
        other._streams = other._stream_rows()
        other.spec = replace(self.spec, streams=other._stream_specs(), scores=())
        return other

    def fits(self, schemas: Mapping[str, pa.Schema]) -> bool:
        """Whether binding the query to these schemas would make the same."""
        return schemas.keys() == self.schemas.keys() and all(
            schema.equals(self.schemas[name], check_metadata=True)
            for name, schema in schemas.items()
        )

    @property
    def time_unit(self) -> str | None:
        """What the kernels' times count, the finest unit of all streams; None: plain integers."""
        return self.clock.unit

    @property
    def integer_times(self) -> bool:
        """Whether the time columns of all streams are plain integers."""
        return all(pa.types.is_integer(one.time.type) for one in self._streams)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the joined result."""
        return self.output.schema

    @property
    def payload(self) -> list[list[str]]:
        """For every stream, the columns that `gather` asks for."""
        return self.output.needed

    @property
    def selected(self) -> list[list[str]]:
        """For every stream, the columns that the result is made of, gathered or measured."""
        return self.output.read

    @property
    def evaluated(self) -> list[list[str]]:
        """For every stream, the columns that predicates evaluated on candidate pairs ask for."""
        columns = {c.key: c for typed in self._opaque.values() for c in typed.node.columns()}
        return [[c.name for c in columns.values() if c.stream == n] for n in self.query.names]

    def prepare(self, stream: int, data: pa.Table | pa.RecordBatch, first_row: int = 0) -> Prepared:
        """Rows of stream number ``stream`` for the kernels.

        ``first_row`` is the number of the first row, for messages.  No copy is made of int64,
        float64 and timestamp columns that lie in one chunk, have no nulls and need no conversion.
        """
        return self._streams[stream].prepare(data, first_row)

    def require(self, columns: Sequence[Iterable[str]]) -> None:
        """`prepare` refuses rows that lack any of these columns, stream by stream."""
        for stream, names in zip(self._streams, columns, strict=True):
            stream.require(names)

    def plain_columns(self, stream: int) -> PlainColumns | None:
        """Time, operands and keys of stream number ``stream`` with their dtypes, and its vectors
        with their widths, if the kernels take them as they lie in NumPy arrays; else None.
        """
        columns = self._streams[stream].plain_columns()
        vectors = self._streams[stream].plain_vectors()
        return None if columns is None or vectors is None else (columns, vectors)

    def as_they_lie(self, stream: int) -> bool:
        """Whether the kernels take rows of a stream from Arrow's memory, nothing being computed."""
        return self._streams[stream].as_they_lie

    def stream_rows(self, stream: int) -> StreamRows:
        """What makes the rows of stream number ``stream``."""
        return self._streams[stream]

    def promise(self, stream: int, time: Any) -> int:
        """A time of stream number ``stream``, as a user gives it to ``advance``, in ticks."""
        return promise_ticks(self._streams[stream].time, time)

    def time_column(self, stream: int) -> TimeColumn:
        """How the times of stream number ``stream`` are counted."""
        return self._streams[stream].time

    def spec_with(self, fetch: Fetch) -> JoinSpec:
        """The spec with predicates that can be evaluated on the data ``fetch`` serves.

        ``fetch(stream, column names, rows)`` gives one Arrow array for each name, at those rows.
        """
        predicates = list(self.spec.predicates)
        for position, typed in self._opaque.items():
            opaque = predicates[position]
            assert isinstance(opaque, Opaque)
            names = {number: self.query.names[number] for number in opaque.streams}
            pairs = _Pairs(typed, names, fetch)
            predicates[position] = replace(opaque, evaluate=pairs.mask, call=pairs.call)
        return replace(self.spec, predicates=tuple(predicates))

    def gather(
        self,
        tables: Sequence[pa.Table],
        rows: Sequence[I64],
        threads: int = 1,
        scores: Sequence[Any] = (),
    ) -> pa.Table:
        """The result table for row numbers of every stream's table.

        ``scores``: of these results, one array for each of ``spec.scores``
        """
        return self.gather_with(table_fetch(tables), rows, threads, scores)

    def gather_with(
        self, fetch: Fetch, rows: Sequence[I64], threads: int = 1, scores: Sequence[Any] = ()
    ) -> pa.Table:
        """The same with columns that ``fetch(stream, column names, rows)`` serves."""
        values = [
            score_values(array, score.certain)
            for array, score in zip(scores, self.spec.scores, strict=True)
        ]
        return self.output.gather(fetch, rows, threads, values)


def _nearest(query: Query, lowering: Lowering) -> Nearest | None:
    if query.nearest is None:
        return None
    if query.direction is not None:
        return Nearest(query.nearest, -1, query.direction)
    for number, predicate in enumerate(lowering.predicates):
        if isinstance(predicate, Similarity):
            return Nearest(query.nearest, number)
    raise QueryError(
        "nearest= needs one condition that compares a distance or similarity with a constant number"
    )


def _check_streams(names: tuple[str, ...], schemas: Mapping[str, pa.Schema]) -> None:
    missing = [name for name in names if name not in schemas]
    for name in schemas:
        if name not in names:
            raise SchemaError(f"{name!r} is not a stream of this query{hint(name, names)}")
    if missing:
        raise SchemaError(
            f"no data for stream {quoted(missing)}; every stream needs its table (or its schema, as"
            " schemas= has them)"
        )
    for name in names:
        if not isinstance(schemas[name], pa.Schema):
            raise SchemaError(
                f"schema of stream {name!r} is {type(schemas[name]).__name__}, not a pyarrow.Schema"
            )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """What an `Opaque` predicate asks of candidate row numbers."""

    typed: Typed
    names: Mapping[int, str]
    fetch: Fetch

    def mask(self, rows: Mapping[int, I64]) -> NDArray[Any]:
        """Which of them hold; RAISED where a function raises."""
        truth, raised = holds(self.typed, self._columns(rows))
        if raised is None:
            return truth
        return np.where(raised, np.uint8(RAISED), truth.view(np.uint8))

    def call(self, rows: Mapping[int, I64]) -> Call:
        """The call that raises for one combination."""
        return raising_call(self.typed, self._columns(rows))

    def _columns(self, rows: Mapping[int, I64]) -> Callable[[Column], Any]:
        columns = {column.key: column for column in self.typed.node.columns()}
        arrays: dict[tuple[str, str], Any] = {}
        for number, name in self.names.items():
            wanted = [column.name for column in columns.values() if column.stream == name]
            for column, array in zip(wanted, self.fetch(number, wanted, rows[number]), strict=True):
                arrays[name, column] = array
        return lambda node: arrays[node.stream, node.name]
