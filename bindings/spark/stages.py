"""The work of the tasks of a streaming query, opened on the executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pyspark import TaskContext
from windjoin.epochs.deciding import decide
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.packing import pack_epoch
from windjoin.epochs.probing import probe_epoch
from windjoin.epochs.running import of_query
from windjoin.epochs.sinking import write_parquet
from windjoin.errors import QueryError
from windjoin.spark.observing import with_metrics

DECIDED = 8  # manifests that a worker remembers
BATCH, QUERY, RUN = "streaming.sql.batchId", "sql.streaming.queryId", "spark.jobGroup.id"


@dataclass(frozen=True, slots=True)
class Here:
    """Which epoch of which run of which query a task is of."""

    epoch: int
    query: str
    run: str


def here() -> Here:
    """What Spark tells a task."""
    context = TaskContext.get()
    told = [None if context is None else context.getLocalProperty(n) for n in (BATCH, QUERY, RUN)]
    if None in told:
        raise QueryError(
            "this DataFrame is the result of windjoin.spark.stream, which is computed by a"
            " streaming query only: start one with writeStream"
        )
    epoch, query, run = map(str, told)
    return Here(int(epoch), query, run)


_decided: dict[tuple[str, int, str], Manifest] = {}


def decided(job: Job, epoch: int, run: str) -> Manifest:
    """What was decided on an epoch; of the tasks that a worker does for it the first one reads."""
    key = job.root, epoch, run
    known = _decided.get(key)
    if known is None or known.job != job.plan.identity:
        known = decide(job, epoch, run)
        if len(_decided) >= DECIDED:
            _decided.clear()
        _decided[key] = known
    return known


@dataclass(frozen=True, slots=True)
class PackEpoch:
    """Rows of a frame to segments."""

    job: Job
    streams: tuple[int, ...]
    names: tuple[str, ...]
    place: int  # of the frame among all
    frames: int
    run: str | None = None  # of `start`; else Spark tells

    @property
    def name(self) -> str:
        """What Spark shows."""
        return "_".join(["pack", *(self.job.plan.query.names[s] for s in self.streams)])

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        at = here()
        job = of_query(self.job, at.query)
        manifest = decided(job, at.epoch, self.run or at.run)
        number = partition * self.frames + self.place
        yield from pack_epoch(batches, job, manifest, self.streams, number, self.names)


@dataclass(frozen=True, slots=True)
class ProbeEpoch:
    """Segments to results."""

    job: Job
    stage: int = 0
    name: ClassVar[str] = "probe_epoch"

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        at = here()
        job = of_query(self.job, at.query)
        told: dict[str, Any] = {}
        manifest = decided(job, at.epoch, at.run)
        found = probe_epoch(batches, job, manifest, partition, self.stage, told)
        if self.stage < job.stages - 1:
            yield from found
        else:
            yield from with_metrics(found, job.result.schema, told)


@dataclass(frozen=True, slots=True)
class ProbeOne:
    """Segments of one epoch, on which the driver has decided, to results."""

    job: Job
    epoch: int
    run: str
    stage: int = 0
    name: ClassVar[str] = "probe_epoch"

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        manifest = decided(self.job, self.epoch, self.run)
        yield from probe_epoch(batches, self.job, manifest, partition, self.stage)


@dataclass(frozen=True, slots=True)
class WriteOne:
    """The same, to Parquet files; how many results went into them."""

    job: Job
    epoch: int
    run: str
    path: str
    name: ClassVar[str] = "write_epoch"

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        manifest = decided(self.job, self.epoch, self.run)
        last = manifest.stages - 1
        results = probe_epoch(batches, self.job, manifest, partition, last)
        written = write_parquet(results, self.job, manifest, partition, self.path)
        yield pa.RecordBatch.from_arrays([pa.array([written], pa.int64())], names=["results"])
