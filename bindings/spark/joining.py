"""`join`: a windowed join of batch DataFrames as a DataFrame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.metadata import version
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from pyspark import __version__ as spark_version
from pyspark import cloudpickle
from pyspark.sql import functions as F
from windjoin.arrow.placement import PAIR_COST, pair_cost, place
from windjoin.arrow.plan import Plan, Strategy, single
from windjoin.arrow.tally import TALLY, histogram, tally
from windjoin.diffusion.registry import SHIPPED
from windjoin.diffusion.stretches import Expected, Histogram
from windjoin.durations import Duration, parse_duration
from windjoin.errors import QueryError
from windjoin.kernels.pairwise import common_key
from windjoin.kernels.spec import JoinSpec
from windjoin.query import Query, check_query
from windjoin.spark import bootstrap as bootstrap_module
from windjoin.spark.bootstrap import bootstrap
from windjoin.spark.frames import (
    SEGMENT_TYPE,
    TALLY_TYPE,
    arrow_schemas,
    checked,
    result_type,
)
from windjoin.spark.interpreters import check_python
from windjoin.spark.meter import Meter, is_classic, new_meter
from windjoin.spark.settings import check_version
from windjoin.spark.sources import Fetched, FrameSource, numbers, sources
from windjoin.spark.tasks import Load, Pack, ProbeTask, ReadAndProbe, TallyKeys, TallyTimes

_pickle: Any = cloudpickle
_pickle.register_pickle_by_value(bootstrap_module)

STRATEGIES = ("auto", *SHIPPED)
SMALL_BYTES = 8 << 20  # of streams with equal keys: not worth a look at the times, and more hosts
ROWS_OF_A_HOST = 1 << 13  # that are worth a host more, if their times are at hand
SAMPLE_ROWS = 1 << 18  # tell where segments should end as well as all rows do
LOOKED_AT_HERE = 1 << 23  # rows of files whose times are read sooner than a job has started
READ_ROWS, READ_BYTES = 1 << 20, 1 << 26  # of files, by all hosts: sooner than an exchange
TIME_BYTES = 16  # of a row with nothing but a time, as Spark estimates it
FEW_COPIES = 2.0
MANY_COPIES = 4.0
HOT_SHARE = 0.25  # of what a host has on average: a key above it is spread over hosts


@dataclass
class Planned:
    """A join as it was planned, and what its tasks reported."""

    plan: Plan
    expected: Expected
    why: str
    meter: Meter | None
    spark: Any
    direct: tuple[str, ...]  # streams whose files are read by the tasks
    exchanges: int  # none where every host reads all files


_last: WeakKeyDictionary[Query, Planned] = WeakKeyDictionary()


def join(
    query: Query,
    frames: Mapping[str, Any],
    *,
    hosts: int | None = None,
    strategy: str = "auto",
    segment: str | int | None = None,
    skew: Literal["spread", "ignore"] = "spread",
) -> Any:
    """Join batch DataFrames; the result is a DataFrame with ``<stream>_<column>`` names.

    ``hosts``: partitions of the exchange; the cluster's cores if not given.
    ``strategy``: ``"auto"``; ``"atr"`` copies rows near the borders of time segments; ``"groups"``
    sends equal keys to one host; ``"ctr"`` and ``"psp"`` keep every row in one place and let
    partial results travel; ``"single"`` joins on one host.
    ``segment``: length of the segments of time, such as "10s"; chosen by row counts if not given.
    ``skew``: whether ``"groups"`` spreads keys with many rows over hosts.

    The plan is made here, by one look at the time columns where the strategy needs it; rows are
    joined when the result is used.
    """
    check_query(query, "join")
    if not query.sides.plain:
        return _outer(query, frames, hosts, strategy, segment, skew)
    planned, streams = planned_join(query, frames, hosts, strategy, segment, skew)
    _last[query] = planned
    return _frame(planned, streams)


def _outer(query: Query, frames: Mapping[str, Any], hosts: int | None, *options: Any) -> Any:
    """Rows without partners too, or instead: what inner joins say, brought together."""
    from windjoin.spark.outer import outer_join

    check_version(spark_version)

    def inner(asked: Query, given: Mapping[str, Any]) -> Any:
        planned, streams = planned_join(asked, given, hosts, *options)
        _last[query] = planned
        return _frame(planned, streams)

    tasks = hosts or cores(checked(query, frames)[0].sparkSession)
    return outer_join(query, frames, inner, lambda work: _task(work, None), tasks)


def planned_join(
    query: Query,
    frames: Mapping[str, Any],
    hosts: int | None,
    strategy: str,
    segment: str | int | None,
    skew: str,
) -> tuple[Planned, list[FrameSource]]:
    """The plan of a join and its sources in the order of the streams."""
    check_version(spark_version)
    _check_options(hosts, strategy, skew)
    given = checked(query, frames)
    spark = given[0].sparkSession
    check_python(spark)
    tasks = cores(spark)
    streams = sources(given, tasks)
    choice = _Choice(query, streams, hosts or tasks, skew)
    ticks = None if segment is None else _segment_ticks(choice, segment)
    plan, expected, why = choice.make(strategy, ticks)
    direct = tuple(
        name
        for number, (name, source) in enumerate(zip(query.names, streams, strict=True))
        if source.holds(plan.schema(number))
    )
    exchanges = 0 if len(direct) == len(streams) and _few(plan, streams) else plan.stages
    return Planned(plan, expected, why, new_meter(spark), spark, direct, exchanges), streams


def _few(plan: Plan, streams: Sequence[FrameSource]) -> bool:
    """Whether every host had better read all files than be sent its rows."""
    files = [source.files for source in set(streams)]
    rows = plan.hosts * sum(one.rows for one in files if one is not None)
    size = plan.hosts * sum(one.total for one in files if one is not None)
    return plan.stages == 1 and rows <= READ_ROWS and size <= READ_BYTES


def last_plan(query: Query) -> Planned | None:
    """What `join` last planned for a query."""
    return _last.get(query)


def cores(spark: Any) -> int:
    """The cluster's cores, as far as Spark tells."""
    if is_classic(spark):
        return max(1, int(spark.sparkContext.defaultParallelism))
    # Spark Connect shows no context: a range has as many partitions as there are cores
    partitions = spark.range(1 << 16).select(F.spark_partition_id()).distinct()
    return max(1, int(partitions.count()))


def _check_options(hosts: int | None, strategy: str, skew: str) -> None:
    if hosts is not None and (not isinstance(hosts, int) or isinstance(hosts, bool) or hosts < 1):
        raise QueryError(f"hosts={hosts!r}: give a number of hosts, 1 or more, or None")
    if strategy not in STRATEGIES:
        raise QueryError(f"strategy={strategy!r}: there are {', '.join(map(repr, STRATEGIES))}")
    if skew not in ("spread", "ignore"):
        raise QueryError(f"skew={skew!r}: it is 'spread' or 'ignore'")


def _segment_ticks(choice: _Choice, segment: str | int) -> int:
    clock = choice.bound.clock
    length: Duration | int = (
        parse_duration(segment, "segment") if isinstance(segment, str) else segment
    )
    if isinstance(length, int) == (clock.step is not None):
        right = '"10s"' if clock.step is not None else "an integer, as the times are"
        raise QueryError(f"segment={segment!r}: the times of this query need {right}")
    ticks = clock.ticks(length)
    if ticks < 1:
        raise QueryError(f"segment={segment!r} is shorter than a tick of the query's times")
    return ticks


class _Choice:
    """The choice of a strategy."""

    def __init__(self, query: Query, streams: list[FrameSource], hosts: int, skew: str) -> None:
        self.query, self.sources, self.hosts, self.skew = query, streams, hosts, skew
        self.frames = [source.frame for source in streams]
        self.schemas = arrow_schemas(query, self.frames)
        self.bound = query.bind(self.schemas)

    def make(self, strategy: str, segment: int | None) -> tuple[Plan, Expected, str]:
        """The plan, what it should cost, and why it was chosen."""
        if strategy != "auto":
            return *self._plan(strategy, self._counts(strategy), segment), "asked for"
        if self.hosts == 1:
            return *self._plan("single", None, segment), "there is one host"
        size, small = known_bytes(self.sources), small_bytes(self.bound.spec)
        if size is not None and size <= small:
            return self._of_few_rows(size, segment)
        counts = self._histogram()
        plan, expected = self._plan("atr", counts, segment)
        why = f"segments of time copy {expected.copies:.2f} rows per row"
        if expected.copies > FEW_COPIES and common_key(self.bound.spec) is not None:
            return *self._plan("groups", counts, segment), f"{why}; equal keys copy none"
        if expected.copies > MANY_COPIES and len(self.frames) > 2:
            return *self._plan("ctr", counts, segment), f"{why}; partial results may travel instead"
        return plan, expected, why

    def _of_few_rows(self, size: int, segment: int | None) -> tuple[Plan, Expected, str]:
        """On one host, unless their times are at hand and say that more hosts share the work."""
        why = f"about {size} bytes, not worth an exchange between hosts"
        hosts, rows = self.hosts, sum(source.rows for source in self.sources)
        self.hosts = min(hosts, rows // ROWS_OF_A_HOST)
        if self.hosts > 1 and all(source.rows for source in self.sources):
            plan, expected = self._plan("atr", self._histogram(), segment)
            if expected.copies <= FEW_COPIES:
                shared = f"segments of time copy {expected.copies:.2f} rows per row"
                return plan, expected, f"{rows} rows in files; {shared}"
        self.hosts = hosts
        return *self._plan("single", None, segment), why

    def _counts(self, strategy: str) -> Histogram | None:
        if strategy in ("single", "groups"):
            return None
        return self._histogram()

    def _histogram(self) -> Histogram | None:
        """Rows over time, by one look at the time columns, or at a sample of them."""
        plan = single(self.query, self.schemas)
        here, elsewhere, factors = [], [], []
        for number, source in enumerate(self.sources):
            time = plan.schema(number).field(self.query.streams[number].time)
            times = pa.schema([time])
            factors.append(1.0)
            if source.holds(times) and source.rows <= LOOKED_AT_HERE:
                fetched = source.fetched(times)
                assert fetched is not None
                here += list(tally(fetched.all(), plan, number))
                continue
            frame, read = source.take(times)
            if not isinstance(read, Fetched):
                share = _worth_counting(frame)
                factors[-1] = 1 / share
                frame = frame if share == 1 else frame.sample(share, seed=1)
            task = _task(TallyTimes(plan, number, read), None)
            elsewhere.append(frame.mapInArrow(task, TALLY_TYPE))
        found = [pa.Table.from_batches(here, TALLY)]
        if elsewhere:
            found.append(union(elsewhere).toArrow().cast(TALLY))
        counted = histogram(pa.concat_tables(found), len(factors))
        return None if counted is None else counted.scaled(factors)

    def _plan(
        self, strategy: Any, counts: Histogram | None, segment: int | None
    ) -> tuple[Plan, Expected]:
        chosen: Strategy = strategy
        hosts = 1 if strategy == "single" else self.hosts
        hot = None
        if strategy == "groups" and self.skew == "spread" and hosts > 1:
            hot = self._hot_keys()
            if len(hot) and counts is None:
                counts = self._histogram()
        return place(
            self.query, self.schemas, hosts=hosts, strategy=chosen, histogram=counts,
            segment=segment, hot=hot,
        )  # fmt: skip

    def _hot_keys(self) -> Any:
        """Hashes of keys with more rows than a host should have of one key."""
        keys = common_key(self.bound.spec)
        plan, _ = place(self.query, self.schemas, hosts=self.hosts, strategy="groups")
        hot: set[int] = set()
        for stream, source in enumerate(self.sources):
            assert keys is not None
            chosen, read = source.take(plan.schema(stream))
            task = _task(TallyKeys(plan, stream, keys[stream], read), None)
            tallied = chosen.mapInArrow(task, "hash long, rows long, stream int")
            found = tallied.groupBy("hash").agg(F.sum("rows").alias("rows")).collect()
            least = HOT_SHARE * sum(row["rows"] for row in found) / self.hosts
            hot |= {row["hash"] for row in found if row["hash"] and row["rows"] > least}
        return np.array(sorted(hot), np.int64).view(np.uint64)


def _worth_counting(times: Any) -> float:
    """The share of rows that says enough about their times."""
    size = estimated_bytes([times])
    return 1.0 if not size else min(1.0, SAMPLE_ROWS * TIME_BYTES / size)


def known_bytes(sources: Sequence[FrameSource]) -> int | None:
    """What all streams take, by their files or else by Spark's estimate; None if nothing tells."""
    files = [source.files for source in sources]
    rest = estimated_bytes([s.frame for s, own in zip(sources, files, strict=True) if own is None])
    return None if rest is None else rest + sum(own.stored for own in files if own is not None)


def small_bytes(spec: JoinSpec) -> int:
    """How many bytes of rows are joined sooner than they are shared out."""
    return int(SMALL_BYTES * PAIR_COST["equal"] / pair_cost(spec))


def estimated_bytes(frames: Sequence[Any]) -> int | None:
    """Spark's own estimate of the frames' size; None where it does not tell."""
    total = 0
    for frame in frames:
        plan = getattr(frame, "_jdf", None)
        if plan is None:
            return None
        stats = plan.queryExecution().optimizedPlan().stats()
        total += int(str(stats.sizeInBytes()))
    return total


def _task(work: Any, meter: Meter | None) -> Any:
    shared = None if meter is None else meter.accumulator
    return bootstrap(
        _pickle.dumps(work), version("windjoin"), shared, re.sub(r"\W", "_", work.name)
    )


def _frame(planned: Planned, streams: list[FrameSource]) -> Any:
    """The exchanges of a plan as one DataFrame."""
    plan, meter = planned.plan, planned.meter
    given = result_type(plan.bound, [source.frame for source in streams])
    if not planned.exchanges:
        every = _same_frames(plan.inputs[0], streams)
        reads = [streams[group[0]].fetched(_travelling(plan, group)) for group in every]
        loads = [Load(g, read) for g, read in zip(every, reads, strict=True) if read is not None]
        hosts = numbers(planned.spark, plan.hosts)
        return hosts.mapInArrow(_task(ReadAndProbe(plan, tuple(loads)), meter), given)
    onward: Any = None
    for stage, arriving in enumerate(plan.inputs):
        packed = _packed(plan, arriving, streams, meter)
        if onward is not None:
            packed.append(onward)
        arrived = union(packed)
        sorted_ = arrived.repartitionById(plan.hosts, F.col("host")).sortWithinPartitions(
            "start", "stream", "sequence"
        )
        kind = given if stage == plan.stages - 1 else SEGMENT_TYPE
        onward = sorted_.mapInArrow(_task(ProbeTask(plan, stage), meter), kind)
    return onward


def union(frames: Sequence[Any]) -> Any:
    """The rows of all frames."""
    return reduce(lambda one, other: one.unionAll(other), frames)


def _steady(plan: Plan, group: tuple[int, ...], given: list[FrameSource]) -> list[str] | None:
    """What tells rows apart that are numbered anew for each exchange; None if they are not."""
    same = [number for number, source in enumerate(given) if source is given[group[0]]]
    if len(same) == len(group) or not plan.numbered & set(group):
        return None
    return list(dict.fromkeys(n for s in same for n in plan.schemas[plan.query.names[s]].names))


def _packed(
    plan: Plan, streams: Sequence[int], given: list[FrameSource], meter: Meter | None
) -> list[Any]:
    """The segments of the streams: by one task for each core where all is in files."""
    fetched: list[tuple[tuple[int, ...], Fetched]] = []
    found: list[tuple[Any, tuple[Load, ...]]] = []
    for group in _same_frames(streams, given):
        source, schema = given[group[0]], _travelling(plan, group)
        read = source.fetched(schema)
        if read is not None:
            fetched.append((group, read))
            continue
        frame, handed = source.handed(schema, _steady(plan, group, given))
        found.append((frame, (Load(group, handed),)))
    if fetched:
        count = max(len(read.shares) for _, read in fetched)
        loads = tuple(Load(group, read) for group, read in fetched)
        found.append((numbers(given[0].frame.sparkSession, count), loads))
    return [
        frame.mapInArrow(_task(Pack(plan, loads), meter), SEGMENT_TYPE) for frame, loads in found
    ]


def _travelling(plan: Plan, group: Sequence[int]) -> pa.Schema:
    """The columns of a frame that any of its streams needs."""
    fields = {field.name: field for stream in group for field in plan.schema(stream)}
    return pa.schema(list(fields.values()))


def _same_frames(streams: Sequence[int], given: list[FrameSource]) -> list[tuple[int, ...]]:
    """Streams that are one and the same DataFrame are packed in one pass."""
    groups: dict[int, list[int]] = {}
    for stream in streams:
        groups.setdefault(id(given[stream]), []).append(stream)
    return [tuple(group) for group in groups.values()]
