"""A query bound to its streams' schemas: what the kernels are told, and rows ready for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.checking import Typed
from windjoin.errors import QueryError, SchemaError, hint, quoted
from windjoin.evaluate import holds
from windjoin.kernels.spec import I64, Bools, JoinSpec, Nearest, Opaque, Similarity, StreamSpec
from windjoin.layout import gatherable_schema
from windjoin.lowering import Lowering
from windjoin.output import Fetch, Output, table_fetch
from windjoin.query import Query
from windjoin.rows import Prepared, StreamRows
from windjoin.times import Clock, clock_of, time_column, window_ticks
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

    def __init__(self, query: Query, schemas: Mapping[str, pa.Schema]) -> None:
        _check_streams(query.names, schemas)
        schemas = {name: gatherable_schema(schema) for name, schema in schemas.items()}
        self.query = query
        self.schemas = schemas
        self.clock: Clock = clock_of(query.streams, schemas)
        lowering = Lowering(query.names, schemas)
        for number, stream in enumerate(query.streams):
            for condition in stream.conditions:
                lowering.filter(number, condition)
        for condition in query.on:
            lowering.add(condition)
        lowering.finish()
        self._output = Output(query, schemas)
        self._opaque = lowering.opaque
        self._streams = [
            StreamRows(time_column(stream, self.clock, schemas), plan, schemas[stream.name])
            for stream, plan in zip(query.streams, lowering.plans, strict=True)
        ]
        self.spec: JoinSpec = JoinSpec(
            tuple(
                StreamSpec(
                    stream.name,
                    window_ticks(stream, self.clock, query.closed),
                    plan.dtypes(),
                    plan.key_forms(),
                    tuple(plan.spaces),
                    plan.wide_specs(),
                )
                for stream, plan in zip(query.streams, lowering.plans, strict=True)
            ),
            tuple(lowering.predicates),
            query.exclude_self,
            _nearest(query, lowering),
        )

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
        return all(
            pa.types.is_integer(self.schemas[one.time.stream].field(one.time.column).type)
            for one in self._streams
        )

    @property
    def schema(self) -> pa.Schema:
        """The schema of the joined result."""
        return self._output.schema

    @property
    def payload(self) -> list[list[str]]:
        """For every stream, the columns that `gather` asks for."""
        return self._output.needed

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

    def plain(self, stream: int) -> Callable[[Any], Any]:
        """A function that gives the rows of a table of stream number ``stream`` without a copy.

        It gives time, operands, keys and sets as they lie, None where they need a second look.
        """
        return self._streams[stream].plain

    def promise(self, stream: int, time: Any) -> int:
        """A time of stream number ``stream``, as a user gives it to ``advance``, in ticks."""
        column = self._streams[stream].time
        arrow_type = self.schemas[column.stream].field(column.column).type
        return promise_ticks(column.stream, arrow_type, column.ratio, time)

    def spec_with(self, fetch: Fetch) -> JoinSpec:
        """The spec with predicates that can be evaluated on the data ``fetch`` serves.

        ``fetch(stream, column names, rows)`` gives one Arrow array for each name, at those rows.
        """
        predicates = list(self.spec.predicates)
        for position, typed in self._opaque.items():
            opaque = predicates[position]
            assert isinstance(opaque, Opaque)
            names = {number: self.query.names[number] for number in opaque.streams}
            predicates[position] = replace(opaque, evaluate=_PairMask(typed, names, fetch))
        return replace(self.spec, predicates=tuple(predicates))

    def gather(self, tables: Sequence[pa.Table], rows: Sequence[I64], threads: int = 1) -> pa.Table:
        """The result table for row numbers of every stream's table."""
        return self._output.gather(table_fetch(tables), rows, threads)

    def gather_with(self, fetch: Fetch, rows: Sequence[I64], threads: int = 1) -> pa.Table:
        """The same with columns that ``fetch(stream, column names, rows)`` serves."""
        return self._output.gather(fetch, rows, threads)


def _nearest(query: Query, lowering: Lowering) -> Nearest | None:
    if query.nearest is None:
        return None
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
        raise SchemaError(f"no data for stream {quoted(missing)}; every stream needs its table")
    for name in names:
        if not isinstance(schemas[name], pa.Schema):
            raise SchemaError(
                f"schema of stream {name!r} is {type(schemas[name]).__name__}, not a pyarrow.Schema"
            )


@dataclass(frozen=True, slots=True)
class _PairMask:
    """``evaluate`` of an `Opaque` predicate: candidate row numbers to a mask."""

    typed: Typed
    names: Mapping[int, str]
    fetch: Fetch

    def __call__(self, rows: Mapping[int, I64]) -> Bools:
        columns = {column.key: column for column in self.typed.node.columns()}
        arrays: dict[tuple[str, str], Any] = {}
        for number, name in self.names.items():
            wanted = [column.name for column in columns.values() if column.stream == name]
            for column, array in zip(wanted, self.fetch(number, wanted, rows[number]), strict=True):
                arrays[name, column] = array
        return holds(self.typed, lambda node: arrays[node.stream, node.name])
