"""`start`: a continuous join driven epoch by epoch, with slots that may change while it runs."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.errors import StreamingQueryException
from windjoin.epochs.deciding import (
    Router,
    check_same,
    decide,
    not_written,
    report_of,
    totals_of,
)
from windjoin.epochs.following import follow
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.planning import check_slots
from windjoin.epochs.reading import last_manifest
from windjoin.epochs.running import of_query
from windjoin.epochs.storage import local_path
from windjoin.epochs.stores import below, folder_at
from windjoin.errors import InputError, QueryError
from windjoin.flags import check_flag
from windjoin.query import Query
from windjoin.shedding import Shedding
from windjoin.spark.frames import SEGMENT_TYPE
from windjoin.spark.history import as_page
from windjoin.spark.meter import is_classic
from windjoin.spark.reasons import reason_of
from windjoin.spark.stages import QUERY, ProbeOne, WriteOne
from windjoin.spark.streaming import (
    FOLDER,
    Streaming,
    at_slots,
    check_folder,
    packed,
    planned_stream,
    remember,
    task,
)

Sink = str | Callable[[Any, int], None]
SINKS = ("parquet", "noop")
ENDLESS = ("continuous", "realTime")  # triggers
KEPT = 4096  # epochs that `Run.history` remembers
logger = logging.getLogger("windjoin.spark")


def start(
    query: Query,
    frames: Mapping[str, Any],
    *,
    checkpoint: str,
    lateness: Any = 0,
    sink: Sink = "parquet",
    path: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    slots: int | None = None,
    strategy: str = "auto",
    segment: Any = None,
    idle: Any = None,
    rejected: str | None = None,
    adaptive: bool = True,
    name: str | None = None,
    shed: Shedding | None = None,
    memory: int | str | None = None,
    log: str | None = None,
) -> Run:
    """Join streaming DataFrames into a sink, epoch by epoch, until it is stopped.

    ``checkpoint``: a folder that driver and executors see under the same path; what the sources
    have read and the log of the window lie in it.
    ``sink``: ``"parquet"`` writes files to ``path``, each once, whatever is done again; ``"noop"``
    throws results away; a function of (DataFrame, epoch) does with them what it likes, and may get
    those of an epoch again after a crash.
    ``trigger``: that of Spark, as a dictionary: ``{"availableNow": True}``, ``{"processingTime":
    "5 seconds"}``; as soon as possible if not given.
    ``log``: where the window is kept, if not in the checkpoint: a folder, or a part of a store of
    objects, such as ``"s3://bucket/log"``, as Arrow knows them.
    ``adaptive``: whether owners change with what the slots are measured to do.
    Other options are those of `stream`.  Not for Spark Connect: use `stream` there.
    """
    where = None if path is None else local_path(check_folder("path", path))
    _check_sink(sink, where)
    check_folder("checkpoint", checkpoint)
    check_flag("adaptive", adaptive)
    _check_trigger(trigger)
    planned = planned_stream(
        query, frames, lateness=lateness, slots=slots, strategy=strategy, segment=segment,
        idle=idle, rejected=rejected, shed=shed, memory=memory,
        log=below(local_path(checkpoint), FOLDER) if log is None else log,
    )  # fmt: skip
    if not is_classic(planned.spark):
        raise QueryError(
            "windjoin.spark.start drives epochs from a classic session; under Spark Connect use"
            " windjoin.spark.stream"
        )
    _check_log(planned.job, local_path(checkpoint))
    remember(query, planned)
    run = Run(planned, sink, where, adaptive)
    run.begin(str(checkpoint), dict(trigger or {}), name)
    return run


def _check_trigger(trigger: Any) -> None:
    if trigger is not None and not isinstance(trigger, Mapping):
        raise QueryError(
            f'trigger={trigger!r}: give a dictionary, such as {{"availableNow": True}}'
        )
    if any(name in (trigger or ()) for name in ENDLESS):
        raise QueryError(
            f"trigger={trigger!r}: an epoch of a join ends before the next one begins; give"
            ' "availableNow" or "processingTime"'
        )


def _check_log(job: Job, checkpoint: str) -> None:
    """Refuse another query than that of a checkpoint now, and not only in its next epoch."""
    known = folder_at(checkpoint).read_json("metadata")  # as Spark has written it
    if known is not None:
        own = of_query(job, known["id"])
        last = last_manifest(own.log)
        if last is not None:
            check_same(last.query, own.described(), own.log.path())


def _check_sink(sink: Any, path: str | None) -> None:
    if not callable(sink) and sink not in SINKS:
        raise QueryError(
            f"sink={sink!r}: give 'parquet', 'noop' or a function of (DataFrame, epoch)"
        )
    if (sink == "parquet") != (path is not None):
        raise QueryError(
            'sink="parquet" needs path=, the folder of its files'
            if path is None
            else f"path={path!r} is for sink='parquet'; a function knows where results go"
        )


@dataclass(frozen=True, slots=True)
class EpochDone:
    """What an epoch did."""

    epoch: int
    seconds: float
    rows: int
    results: int
    slots: tuple[dict[str, Any], ...]  # what each was measured to do


class Run:
    """A continuous join that runs; made by `start`."""

    def __init__(self, planned: Streaming, sink: Sink, path: str | None, adaptive: bool) -> None:
        self.job: Job = planned.job  # its root becomes that of the query
        self.history: deque[EpochDone] = deque(maxlen=KEPT)
        self.query: Any = None  # Spark's
        self._planned, self._sink, self._path = planned, sink, path
        self._slots = planned.job.slots
        self._router: Router | None = follow if adaptive else None
        self._lock = threading.Lock()
        self._manifest: Manifest | None = None
        self._totals: dict[str, dict[str, int]] = {}  # by stream
        self._hows: Counter[str] = Counter()  # how slots came by their windows
        self._run = uuid4().hex
        self._failed: BaseException | None = None  # what the last epoch raised

    # -- what users call -------------------------------------------------------------------------

    @property
    def hosts(self) -> list[dict[str, Any]]:
        """The slots, with what each was measured to do in the last epoch."""
        with self._lock:
            last = self.history[-1] if self.history else None
            told = {} if last is None else {one["slot"]: one for one in last.slots}
            return [{"slot": slot, **told.get(slot, {})} for slot in range(self._slots)]

    def status(self) -> dict[str, Any]:
        """Counts of all epochs so far, watermarks, and the last epoch."""
        with self._lock:
            last, manifest = (self.history[-1] if self.history else None), self._manifest
            totals = {name: dict(counts) for name, counts in self._totals.items()}
        ended = None if self.query is None else self.query.exception()
        own = None if ended is None else reason_of(self._failed) or ended
        names = self.job.plan.query.names
        marks = () if manifest is None else manifest.watermarks
        return {
            "active": self.query is not None and bool(self.query.isActive),
            "epoch": None if last is None else last.epoch,
            "slots": self._slots,
            "strategy": self.job.units.kind,
            "streams": totals,
            "watermarks": dict(zip(names, marks, strict=False)),
            "rows": 0 if last is None else last.rows,
            "results": 0 if last is None else last.results,
            "seconds": 0.0 if last is None else last.seconds,
            "window_epochs": 0 if manifest is None else len(manifest.window),
            "log_bytes": 0 if manifest is None else sum(e.bytes for e in manifest.window),
            "hosts": [] if last is None else list(last.slots),
            "sessions": dict(self._hows),
            "exception": None if own is None else str(own),
        }

    def add_slots(self, count: int = 1) -> int:
        """Have more slots from the next epoch on, or fewer with a negative number; how many.

        No file moves: other slots read what the log has.
        """
        with self._lock:
            if isinstance(count, bool) or not isinstance(count, int):
                raise QueryError(f"add_slots({count!r}): give how many more, or fewer below 0")
            self._slots = check_slots(self._slots + count)
            return self._slots

    def report(self, path: str) -> None:
        """Write a page about the slots over time."""
        with self._lock:
            done = list(self.history)
        page = as_page(self.job, done, self.status())
        try:
            Path(path).write_text(page, encoding="utf-8")
        except OSError as error:
            raise InputError(f"report: {str(path)!r} cannot be written: {error}") from error

    def stop(self) -> None:
        """Stop after what is being done; a later `start` with the same checkpoint goes on."""
        self.query.stop()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, and raise what ended it; False if ``timeout`` came before."""
        try:
            if timeout is None:
                self.query.awaitTermination()
                return True
            return bool(self.query.awaitTermination(timeout))
        except StreamingQueryException as error:
            reason = reason_of(self._failed)
            if reason is None:
                raise
            raise reason from error

    # -- an epoch --------------------------------------------------------------------------------

    def begin(self, checkpoint: str, trigger: dict[str, Any], name: str | None) -> None:
        """Have Spark call `_epoch` for each of its micro-batches."""
        segments = packed(self._planned, self._run)
        writer = segments.writeStream.option("checkpointLocation", checkpoint)
        if name is not None:
            writer = writer.queryName(name)
        if trigger:
            try:
                writer = writer.trigger(**trigger)
            except (TypeError, ValueError) as error:
                raise QueryError(f"trigger={trigger!r} is none that Spark has: {error}") from error
        self.query = writer.foreachBatch(self._epoch).start()

    def _epoch(self, segments: Any, epoch: int) -> None:
        try:
            self._do(segments, epoch)
        except BaseException as error:
            self._failed = error
            raise

    def _do(self, segments: Any, epoch: int) -> None:
        began = time.perf_counter()
        spark = segments.sparkSession
        job = of_query(self._planned.job, spark.sparkContext.getLocalProperty(QUERY))
        with self._lock:
            self.job, slots = job, self._slots
        manifest = decide(job, epoch, self._run, router=self._router, slots=slots, adopt=True)
        arrived = at_slots(segments, manifest.slots)
        for stage in range(manifest.stages - 1):
            probe = ProbeOne(job, epoch, manifest.run, stage)
            onward = arrived.mapInArrow(task(probe), SEGMENT_TYPE)
            arrived = at_slots(onward, manifest.slots)
        self._carry_out(job, manifest, arrived)
        self._remember(job, manifest, time.perf_counter() - began)

    def _carry_out(self, job: Job, manifest: Manifest, arrived: Any) -> None:
        if self._path is not None:
            work = WriteOne(job, manifest.epoch, manifest.run, self._path)
            arrived.mapInArrow(task(work), "results long").collect()
            return
        probe = ProbeOne(job, manifest.epoch, manifest.run, manifest.stages - 1)
        results = arrived.mapInArrow(task(probe), self._planned.kind)
        if callable(self._sink):
            self._sink(results, manifest.epoch)
            if not_written(job.log, manifest):  # the sink did not take all
                results.write.format("noop").mode("overwrite").save()
            return
        results.write.format("noop").mode("overwrite").save()

    def _remember(self, job: Job, manifest: Manifest, seconds: float) -> None:
        report = report_of(job.log, manifest)
        told = report.loads
        rows, results = (sum(one[name] for one in told) for name in ("rows", "results"))
        done = EpochDone(manifest.epoch, seconds, rows, results, told)
        with self._lock:
            self.history.append(done)
            self._hows.update(one["how"] for one in told)
            self._manifest = manifest
            self._totals = totals_of(job.plan.query.names, manifest.totals, report)
        for one in told:
            logger.info(
                "epoch %d, slot %d: %d rows, %d results, %.3f CPU seconds, %s",
                manifest.epoch, one["slot"], one["rows"], one["results"], one["cpu"], one["how"],
            )  # fmt: skip
