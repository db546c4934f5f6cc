"""A row of metrics for each slot and epoch in the progress of a streaming query.

The last batch of a slot has one row more, with nothing but its metrics; Spark collects these rows
as observed metrics, and lets no other see them.  They travel as JSON in one text column: every row
of the results has that column, and nulls of a struct are as wide as its fields.  Spark asks each
row for what it collects, and compiles that for each epoch, so there is one list, opened at its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType
from windjoin.epochs.job import Job

NAME = "windjoin_metrics"
_KINDS = {
    "slot": LongType(),
    "rows": LongType(),
    "window_rows": LongType(),
    "bytes": LongType(),
    "results": LongType(),
    "comparisons": LongType(),
    "cpu": DoubleType(),
    "seconds": DoubleType(),
    "how": StringType(),
    "worker": LongType(),
}
METRICS = StructType([StructField(name, kind) for name, kind in _KINDS.items()])
KIND = StructField(NAME, StringType(), True)


def observed_name(job: Job) -> str:
    """The name of the metrics in ``observedMetrics``: windjoin, and the streams."""
    return " ".join(["windjoin", *job.plan.query.names])


def with_metrics(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, told: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Results with a column for metrics, and a row for these, which ``told`` has by then."""
    fields = [*schema, pa.field(NAME, pa.string())]
    whole = pa.schema([field.with_nullable(True) for field in fields])
    for batch in batches:
        nothing: Any = pa.nulls(len(batch), pa.string())
        yield pa.RecordBatch.from_arrays([*batch.columns, nothing], schema=whole)
    row: Any = pa.array([json.dumps({name: told[name] for name in _KINDS})], pa.string())
    empty: list[Any] = [pa.nulls(1, field.type) for field in schema]
    yield pa.RecordBatch.from_arrays([*empty, row], schema=whole)


def observed(results: Any, job: Job) -> Any:
    """Results alone, of a frame of results and metrics; Spark is told to collect the latter."""
    text = F.col(NAME)
    told = F.concat(F.lit("["), F.array_join(F.collect_list(text), ","), F.lit("]"))
    slots = F.from_json(told, ArrayType(METRICS)).alias("slots")
    seen = results.observe(observed_name(job), slots)
    return seen.where(text.isNull()).drop(NAME)
