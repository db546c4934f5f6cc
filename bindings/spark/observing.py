"""A row of metrics for each slot and epoch in the progress of a streaming query.

The last batch of a slot has one row more, with nothing but its metrics; Spark collects these rows
as observed metrics, and lets no other see them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType
from windjoin.epochs.job import Job

NAME = "windjoin_metrics"
_KINDS: dict[str, tuple[Any, Any]] = {
    "slot": (pa.int64(), LongType()),
    "rows": (pa.int64(), LongType()),
    "window_rows": (pa.int64(), LongType()),
    "bytes": (pa.int64(), LongType()),
    "results": (pa.int64(), LongType()),
    "comparisons": (pa.int64(), LongType()),
    "cpu": (pa.float64(), DoubleType()),
    "seconds": (pa.float64(), DoubleType()),
    "how": (pa.string(), StringType()),
    "worker": (pa.int64(), LongType()),
}
METRICS: Any = pa.struct([(name, arrow) for name, (arrow, _) in _KINDS.items()])
KIND = StructField(NAME, StructType([StructField(n, k) for n, (_, k) in _KINDS.items()]), True)


def observed_name(job: Job) -> str:
    """The name of the metrics in ``observedMetrics``: windjoin, and the streams."""
    return " ".join(["windjoin", *job.plan.query.names])


def with_metrics(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, told: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Results with a column for metrics, and a row for these, which ``told`` has by then."""
    fields = [*schema, pa.field(NAME, METRICS)]
    whole = pa.schema([field.with_nullable(True) for field in fields])
    for batch in batches:
        nothing: Any = pa.nulls(len(batch), METRICS)
        yield pa.RecordBatch.from_arrays([*batch.columns, nothing], schema=whole)
    row: Any = pa.array([{name: told[name] for name in _KINDS}], METRICS)
    empty: list[Any] = [pa.nulls(1, field.type) for field in schema]
    yield pa.RecordBatch.from_arrays([*empty, row], schema=whole)


def observed(results: Any, job: Job) -> Any:
    """Results alone, of a frame of results and metrics; Spark is told to collect the latter."""
    metrics = F.col(NAME)
    seen = results.observe(
        observed_name(job),
        F.sum(metrics["rows"]).alias("rows"),
        F.sum(metrics["results"]).alias("results"),
        F.sum(metrics["bytes"]).alias("bytes"),
        F.sum(metrics["cpu"]).alias("cpu"),
        F.collect_list(metrics).alias("slots"),
    )
    return seen.where(metrics.isNull()).drop(NAME)
