"""Outer, semi and anti joins of batch DataFrames: which rows the inner join found, by numbers.

Rows whose partners matter get numbers that their contents decide.  The inner join, by whatever
strategy, gives the numbers of what it found, and one more exchange brings them together with the
rows, wherever copies of these were probed: there it is decided, in one place, who has no partner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from windjoin.arrow.packing import as_schema
from windjoin.binding import BoundQuery
from windjoin.errors import SchemaError, quoted
from windjoin.expressions import Alias, Column, Expression
from windjoin.hows import INNER
from windjoin.kernels.outer import unmatched_rows
from windjoin.layout import plain_type
from windjoin.outer import unmatched
from windjoin.output import table_fetch
from windjoin.presence import against, base, part
from windjoin.query import Query
from windjoin.spark.frames import arrow_schemas, checked, result_type
from windjoin.spark.sources import column, comparable

ID = "windjoin_id"  # of a row, while it is joined

Frames = Mapping[str, Any]
Inner = Callable[[Query, Frames], Any]
Task = Callable[[Any], Any]


def outer_join(query: Query, frames: Frames, inner: Inner, task: Task, tasks: int) -> Any:
    """The join of ``frames``; ``inner`` joins others, ``task`` sends work to Spark's tasks."""
    return _Outer(query, checked(query, frames), inner, task, tasks).result()


class _Outer:
    def __init__(
        self, query: Query, frames: list[Any], inner: Inner, task: Task, tasks: int
    ) -> None:
        self.query, self.inner, self.task, self.tasks = query, inner, task, tasks
        self.schemas = arrow_schemas(query, frames)
        plain = {
            name: pa.schema([field.with_type(plain_type(field.type)) for field in schema])
            for name, schema in self.schemas.items()
        }
        self.bound = query.bind(plain)
        self.type = result_type(self.bound, frames)
        known: dict[int, Any] = {}
        for name, frame in zip(query.names, frames, strict=True):
            if id(frame) not in known:
                known[id(frame)] = self._numbered(name, frame)
        self.frames = {n: known[id(f)] for n, f in zip(query.names, frames, strict=True)}

    def _numbered(self, name: str, frame: Any) -> Any:
        """The rows with numbers that are the same whenever the frame is computed."""
        if ID in frame.columns:
            raise SchemaError(
                f"stream {name!r}: column {quoted([ID])} is a name that windjoin uses itself;"
                " rename it"
            )
        kinds = {field.name: field.dataType for field in frame.schema}
        keys = [comparable(column(one), kind) for one, kind in kinds.items()]
        spread = frame.repartition(self.tasks, F.xxhash64(*keys)).sortWithinPartitions(*keys)
        return spread.withColumn(ID, F.monotonically_increasing_id())

    def result(self) -> Any:
        sides, count = self.query.sides, len(self.query.streams)
        if sides.keep:
            return self._with_unmatched()
        if sides.combined(count):
            return self._combinations()
        (stream,) = sides.given(count)
        name = self.query.names[stream]
        found = self._joined(tuple(range(count)), [self._number(stream)])
        how = "left_semi" if sides.exists else "left_anti"
        rows = self.frames[name].join(found.withColumnRenamed(found.columns[0], ID), ID, how)
        return self._alone(stream, rows)

    # -- what the inner join is asked for -------------------------------------------------------

    def _number(self, stream: int) -> Alias:
        return Alias(Column(self.query.names[stream], ID), f"{ID}_{stream}")

    def _shown(self) -> list[Expression]:
        """What the result is made of."""
        if self.query.select is not None:
            return list(self.query.select)
        return [
            Column(name, field.name) for name in self.query.given for field in self.schemas[name]
        ]

    def _joined(self, streams: Sequence[int], select: Sequence[Expression]) -> Any:
        """The inner join of some streams."""
        asked = part(self.query, streams) if len(streams) < len(self.query.streams) else self.query
        asked = replace(asked, select=tuple(select), sides=INNER)
        return self.inner(asked, {name: self.frames[name] for name in asked.names})

    def _with_unmatched(self) -> Any:
        """Results, and rows of kept streams that are in none."""
        kept = self.query.sides.keep
        everyone = range(len(self.query.streams))
        whole = self._joined(tuple(everyone), [*self._shown(), *map(self._number, kept)])
        numbers = whole.columns[-len(kept) :]
        result = whole.drop(*numbers)
        for stream, number in zip(kept, numbers, strict=True):
            found = whole.select(F.col(number).alias(ID))
            rows = self.frames[self.query.names[stream]].join(found, ID, "left_anti")
            result = result.unionAll(self._alone(stream, rows))
        return result

    def _combinations(self) -> Any:
        """Combinations of several streams that others fit, or do not."""
        query = self.query
        given = query.sides.given(len(query.streams))
        ids = [self._number(stream) for stream in given]
        names = [one.name for one in ids]
        found = self._joined(base(query), [*self._shown(), *ids])
        if query.sides.exists:
            found = found.dropDuplicates(names)
        if query.sides.missing:
            found = found.join(self._joined(against(query), ids), names, "left_anti")
        return found.select([column(field.name) for field in self.type])

    def _alone(self, stream: int, rows: Any) -> Any:
        """Rows of one stream as they come out, but for those that are no rows of it."""
        work = Alone(self.query, dict(self.bound.schemas), stream)
        return rows.drop(ID).mapInArrow(self.task(work), self.type)


@dataclass(frozen=True, slots=True)
class Alone:
    """Rows of one stream to what comes out of them."""

    query: Query
    schemas: Mapping[str, pa.Schema]
    stream: int
    name: ClassVar[str] = "rows_without_partners"

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        bound = BoundQuery(self.query, self.schemas)
        schema, name = self.schemas[self.query.names[self.stream]], self.query.names[self.stream]
        empty = [one.empty_table() for one in self.schemas.values()]
        for batch in batches:
            table = pa.Table.from_batches([as_schema(batch, schema, name)])
            none = np.zeros(len(table), np.bool_)
            rows = unmatched_rows(bound.prepare(self.stream, table).rows, none)
            tables = [table if s == self.stream else one for s, one in enumerate(empty)]
            yield from unmatched(bound, table_fetch(tables), self.stream, rows).to_batches()
