"""`stream`: a windowed join of streaming DataFrames as a streaming DataFrame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import __version__ as spark_version
from pyspark import cloudpickle
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from windjoin.epochs.job import Job
from windjoin.epochs.planning import job_of
from windjoin.epochs.requested import OWN
from windjoin.epochs.static import with_static
from windjoin.epochs.storage import local_path
from windjoin.epochs.stores import below, refuse_store
from windjoin.errors import QueryError
from windjoin.query import Query, check_query
from windjoin.shedding import Shedding
from windjoin.spark import bootstrap as bootstrap_module
from windjoin.spark.bootstrap import bootstrap
from windjoin.spark.frames import SEGMENT_TYPE, arrow_schemas, checked, result_type
from windjoin.spark.interpreters import check_python
from windjoin.spark.joining import cores, union
from windjoin.spark.observing import KIND, observed
from windjoin.spark.settings import check_version
from windjoin.spark.sources import column
from windjoin.spark.stages import PackEpoch, ProbeEpoch

_pickle: Any = cloudpickle
_pickle.register_pickle_by_value(bootstrap_module)
FOLDER = "windjoin"


@dataclass
class Streaming:
    """A continuous join as it was planned."""

    job: Job
    spark: Any
    frames: tuple[Any, ...]  # distinct ones
    groups: tuple[tuple[int, ...], ...]  # the streams that each of them is
    kind: Any  # of results


_last: WeakKeyDictionary[Query, Streaming] = WeakKeyDictionary()


def stream(
    query: Query,
    frames: Mapping[str, Any],
    *,
    lateness: Any = 0,
    slots: int | None = None,
    strategy: str = "auto",
    log: str | None = None,
    segment: Any = None,
    idle: Any = None,
    rejected: str | None = None,
    shed: Shedding | None = None,
    memory: int | str | None = None,
) -> Any:
    """Join streaming DataFrames; the result is a streaming DataFrame, for any sink and trigger.

    ``lateness``: how far behind the newest row of earlier epochs a row of a stream may be.
    ``slots``: partitions of the exchange; the cluster's cores if not given.
    ``strategy``: ``"groups"`` sends equal keys to one slot, ``"atr"`` cuts time into segments and
    copies rows near their borders, ``"single"`` joins in one slot, ``"auto"`` takes groups where
    rows of a result share a key.  Strategies that follow measured loads are those of `start`.
    ``log``: a folder that driver and executors see under the same path.  The window is kept there;
    like a checkpoint it has to stay where it is for the query to go on.  By default
    ``windjoin`` in ``spark.sql.streaming.checkpointLocation``, or else in the warehouse.
    ``segment``: the length of the segments of ``"atr"``, such as "10s".
    ``idle``: a stream that brings nothing for that long, such as "30s", holds others back no more.
    ``rejected``: a folder for rows that are late or have no time, a Parquet file for each epoch and
    stream that has any.
    ``shed``: a `windjoin.Shedding`: each slot sheds by its own load, and its budget is that of one
    slot.  An epoch that is done again may then give other results, all of them true.

    ``memory``: what a slot may hold beside the rows of an epoch, such as "2GB".  Where its window
    takes more, it is read from the log in parts that fit: slower, and the same results.

    Results leave with the epoch that brings their last member.  An epoch that is done again, by
    another attempt, executor or driver, gives the same results; a sink that can tell
    (files, tables, a merge by epoch) then has every result exactly once.
    """
    planned = planned_stream(
        query, frames, lateness=lateness, slots=slots, strategy=strategy, log=log,
        segment=segment, idle=idle, rejected=rejected, shed=shed, memory=memory,
    )  # fmt: skip
    refuse_store(planned.job.root)
    remember(query, planned)
    return probed(planned, packed(planned), planned.job.slots)


def planned_stream(
    query: Query,
    frames: Mapping[str, Any],
    *,
    log: str | None,
    slots: int | None,
    **options: Any,
) -> Streaming:
    """The job of a continuous join, and its frames."""
    check_version(spark_version)
    check_query(query, "stream")
    for option, folder in (("log", log), ("rejected", options.get("rejected"))):
        if folder is not None:
            check_folder(option, folder)
    given = checked(query, frames, streaming=True)
    spark = given[0].sparkSession
    check_python(spark)
    schemas = arrow_schemas(query, given)
    whole = [schemas[name] for name in query.names] if options.get("rejected") else ()
    count = cores(spark) if slots is None else slots
    job = job_of(query, schemas, log or default_log(spark), slots=count, whole=whole, **options)
    still = {number: frame for number, frame in enumerate(given) if not frame.isStreaming}
    job = with_static(job, {n: _rows(job, n, frame) for n, frame in still.items()})
    alike: dict[int, list[int]] = {}
    for number, frame in enumerate(given):
        if number in still:
            continue
        alike.setdefault(id(frame), []).append(number)
    groups = tuple(tuple(group) for group in alike.values())
    distinct = tuple(given[group[0]] for group in groups)
    return Streaming(job, spark, distinct, groups, result_type(job.result, given))


def check_folder(option: str, value: Any) -> Any:
    """A path or an address, as it was given; `QueryError` if it is none, or of a file."""
    if not isinstance(value, (str, os.PathLike)) or not str(value):
        raise QueryError(f"{option}={value!r}: give the path of a folder")
    if os.path.isfile(local_path(str(value))):
        raise QueryError(f"{option}={str(value)!r} is a file; give the path of a folder")
    return value


def _rows(job: Job, number: int, frame: Any) -> pa.Table:
    """A batch DataFrame, here."""
    names = travelling(job, [number])
    rows: pa.Table = frame.select([column(name) for name in names]).toArrow()
    return rows


def remember(query: Query, planned: Streaming) -> None:
    """For `last_stream`."""
    _last[query] = planned


def last_stream(query: Query) -> Streaming | None:
    """What `stream` last planned for a query."""
    return _last.get(query)


def default_log(spark: Any) -> str:
    """Where logs lie if nobody says: those of each streaming query in a folder of its own."""
    conf = spark.conf
    base = conf.get("spark.sql.streaming.checkpointLocation", None)
    if not base:
        base = conf.get("spark.sql.warehouse.dir", None) or os.path.abspath("spark-warehouse")
    return below(local_path(base), FOLDER)


def task(work: Any) -> Any:
    """A function for ``mapInArrow``."""
    return bootstrap(_pickle.dumps(work), version("windjoin"), None, work.name)


def packed(planned: Streaming, run: str | None = None) -> Any:
    """Segments of all frames; ``run`` if it is not Spark's own."""
    parts = []
    for place, (frame, group) in enumerate(zip(planned.frames, planned.groups, strict=True)):
        names = travelling(planned.job, group)
        # numbers for names: `mapInArrow` refuses names with dots
        numbered = [column(name).alias(f"c{number}") for number, name in enumerate(names)]
        work = PackEpoch(planned.job, group, tuple(names), place, len(planned.frames), run)
        parts.append(frame.select(numbered).mapInArrow(task(work), SEGMENT_TYPE))
    return union(parts)


def travelling(job: Job, group: Sequence[int]) -> list[str]:
    """The columns of a frame that its streams need; all if rejected rows are wanted."""
    found: dict[str, None] = {}
    for number in group:
        schema: pa.Schema = job.whole[number] if job.whole else job.plan.schema(number)
        found |= dict.fromkeys(name for name in schema.names if name not in OWN)
    return list(found)


def probed(planned: Streaming, segments: Any, slots: int) -> Any:
    """Results of segments."""
    job = planned.job
    arrived = at_slots(segments, slots)
    for stage in range(job.stages - 1):
        onward = arrived.mapInArrow(task(ProbeEpoch(job, stage)), SEGMENT_TYPE)
        arrived = at_slots(onward, slots)
    kind = StructType([*planned.kind.fields, KIND])
    return observed(arrived.mapInArrow(task(ProbeEpoch(job, job.stages - 1)), kind), job)


def at_slots(segments: Any, slots: int) -> Any:
    """Each segment in the partition of its slot."""
    return segments.repartitionById(slots, F.col("host"))
