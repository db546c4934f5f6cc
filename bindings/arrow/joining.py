"""`joiner`: a whole join as one function of record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from windjoin.arrow.blocks import BlockJoin
from windjoin.arrow.ddl import ddl
from windjoin.arrow.packing import as_schema
from windjoin.arrow.plan import DEFAULT, Limits, Plan, single, without_memory
from windjoin.arrow.probing import MOST_ROWS, ResultBatches, stage_inputs
from windjoin.errors import DataError, QueryError, SchemaError, hint
from windjoin.hows import INNER
from windjoin.layout import fitted, gatherable
from windjoin.query import Query
from windjoin.run import RunOptions, run


def joiner(
    query: Query,
    *,
    stream_column: str,
    schemas: Mapping[str, pa.Schema],
    limits: Limits = DEFAULT,
) -> Joiner:
    """A function for ``mapInArrow`` that joins the rows of a partition with each other.

    For frames whose partitions already hold what belongs together.  Every row says in
    ``stream_column`` of which stream it is; columns of other streams are not looked at.  Rows may
    come in any order; a partition is held in memory.  The function pickles; ``schema`` is what it
    gives rows in, and ``ddl`` the same as ``mapInArrow`` takes it.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    >>> join = joiner(
    ...     wj.join(a, b, on=a["k"] == b["k"]),
    ...     stream_column="s",
    ...     schemas={"a": schema, "b": schema},
    ... )
    >>> rows = pa.record_batch({"s": ["a", "b", "b"], "t": [1, 5, 50], "k": ["x", "x", "x"]})
    >>> [batch.to_pylist() for batch in join([rows])]
    [[{'a_t': 1, 'a_k': 'x', 'b_t': 5, 'b_k': 'x'}]]
    >>> join.ddl  # so that frame.mapInArrow(join, join.ddl) is the joined frame
    '`a_t` bigint, `a_k` string, `b_t` bigint, `b_k` string'
    """
    if not isinstance(stream_column, str) or not stream_column:
        raise QueryError(f"stream_column={stream_column!r}: give the name of a column")
    if query.exclude_self:
        raise QueryError(
            "joiner cannot tell which rows of different streams are one row: exclude_self needs"
            " query.run, or windjoin.spark.join"
        )
    plain = replace(query, nearest=None, sides=INNER)
    plan = single(plain, schemas, limits)
    own = None if query.nearest is None and query.sides.plain else without_memory(query)
    return Joiner(plan, stream_column, query.bind(schemas).schema, own)


@dataclass(frozen=True, slots=True)
class Joiner:
    """What `joiner` returns."""

    plan: Plan
    stream_column: str
    schema: pa.Schema  # of the rows it gives
    query: Query | None = None  # if more, or less, comes out than results of an inner join

    @property
    def ddl(self) -> str:
        """The schema of what it gives, as Spark writes it."""
        return ddl(self.schema)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.query is not None:
            yield from self._run(self.query, batches)
            return
        joined, _, schemas = stage_inputs(self.plan, 0)
        block = BlockJoin(joined, schemas, 0, _unbounded(self.plan.limits))
        for batch in batches:
            for stream, rows in self._parted(batch):
                for _ in block.add(stream, 0, as_schema(rows, schemas[stream], self._name(stream))):
                    raise AssertionError("an unbounded block was joined early")
        output = ResultBatches(self.plan, joined)
        for found in block.finish():
            for results in output.batches(found):
                yield from self._laid_out(results)

    def _run(self, query: Query, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows of the partition as whole tables."""
        schemas = [self.plan.schema(stream) for stream in range(len(query.names))]
        parts: list[list[pa.RecordBatch]] = [[] for _ in schemas]
        for batch in batches:
            for stream, rows in self._parted(batch):
                parts[stream].append(as_schema(rows, schemas[stream], self._name(stream)))
        tables = {
            name: pa.Table.from_batches(part, schema)
            for name, part, schema in zip(query.names, parts, schemas, strict=True)
        }
        table, _ = run(query, tables, RunOptions(threads=1))
        for results in table.to_batches(max_chunksize=MOST_ROWS):
            yield from self._laid_out(results)

    def _name(self, stream: int) -> str:
        return self.plan.query.names[stream]

    def _laid_out(self, results: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Results in the schema of the query, which may have dictionaries."""
        if results.schema.equals(self.schema):
            yield results
            return
        columns = [
            fitted(column, field.type)
            for column, field in zip(results.columns, self.schema, strict=True)
        ]
        yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches()

    def _parted(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows of a batch, stream by stream."""
        if self.stream_column not in batch.schema.names:
            raise SchemaError(
                f"stream_column={self.stream_column!r}: these rows have no such column"
                f"{hint(self.stream_column, batch.schema.names)}"
            )
        column = batch.column(self.stream_column).cast(pa.string())
        names = pa.array(self.plan.query.names)
        places = pc.index_in(column, names)
        if places.null_count:
            row = int(np.flatnonzero(places.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(
                f"column {self.stream_column!r}, row {row} of its batch: {column[row].as_py()!r} is"
                f" not a stream of this query; there are {', '.join(map(repr, names.to_pylist()))}"
            )
        numbers = places.to_numpy()
        for stream in np.unique(numbers):
            rows = np.flatnonzero(numbers == stream)
            own = [name for name in self.plan.schema(stream).names if name in batch.schema.names]
            yield int(stream), gatherable(batch.select(own)).take(cast(Any, pa.array(rows)))


def _unbounded(limits: Limits) -> Limits:
    return replace(limits, block_rows=2**62, block_bytes=2**62)
