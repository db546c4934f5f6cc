"""Run a query over whole tables in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery, Prepared
from windjoin.errors import QueryError
from windjoin.flags import check_flag
from windjoin.host_options import asked_hosts
from windjoin.hosted_tables import join_on_hosts
from windjoin.kernel_errors import AS_OWN_ERRORS
from windjoin.kernels import batch
from windjoin.kernels.outer import Left, Lonely
from windjoin.kernels.scores import Scores
from windjoin.kernels.spec import I64, Rows
from windjoin.kinds import INT64_MAX
from windjoin.outer import in_order as in_order_of_time
from windjoin.outer import numbers, whole_results, with_unmatched
from windjoin.output import table_fetch
from windjoin.presence import combinations
from windjoin.progress import ProgressOption, progress_bar
from windjoin.pyx.base.column import in_order
from windjoin.pyx.base.pieces import sorting, sorting_by, taken
from windjoin.query import Query
from windjoin.reading import read_tables
from windjoin.row_windows import counts_rows

ROWS_PER_THREAD = 1 << 16  # fewer are not worth a thread


@dataclass
class BatchRun:
    """What one batch run did; ``Query.metrics`` and ``explain()`` show it."""

    bound: BoundQuery
    run: batch.JoinRun
    rejected: dict[str, I64]  # row numbers without a time, per stream
    rows_in: dict[str, int] = field(default_factory=dict)
    cluster: dict[str, Any] | None = None  # what hosts of this process did, if there were any
    unmatched: dict[str, int] = field(default_factory=dict)  # rows in no result that came out
    parts: list[BatchRun] = field(default_factory=list)  # joins that say which combinations do

    def metrics(self) -> dict[str, Any]:
        """Counters of the run, in all and per stream."""
        names = self.bound.query.names
        return {
            "rows_in": sum(self.rows_in.values()),
            "results": self.run.results,
            "rejected": sum(len(rows) for rows in self.rejected.values()),
            "comparisons": self._comparisons,
            "threads": self.run.threads,
            **({} if self.cluster is None else {"cluster": self.cluster}),
            "streams": {
                name: {
                    "rows_in": self.rows_in[name],
                    "joinable": self._joinable(number, name),
                    "rejected": len(self.rejected[name]),
                    **({"unmatched": self.unmatched[name]} if name in self.unmatched else {}),
                }
                for number, name in enumerate(names)
            },
        }

    def _joinable(self, number: int, name: str) -> int:
        """Rows of a stream that can be part of a result."""
        for part in self.parts:
            if name in part.bound.query.names:
                return part._joinable(part.bound.query.names.index(name), name)
        return self.run.rows[number]

    @property
    def _comparisons(self) -> int:
        if self.parts:
            return sum(part._comparisons for part in self.parts)
        if self.cluster is None:
            return self.run.comparisons
        return sum(host["comparisons"] for host in self.cluster["hosts"])


@dataclass
class Joined:
    """Results of whole tables."""

    rows: list[I64]  # members of results, stream by stream
    scores: Scores
    left: Left = field(default_factory=list)  # rows that come out though they are in no result
    order: I64 | None = None  # of results, and these rows behind them


@dataclass(frozen=True)
class RunOptions:
    """How a batch is run, as `Query.run` takes it."""

    threads: int | None = None
    hosts: int | None = None
    strategy: str = "auto"
    segment: Any = None
    progress: ProgressOption = False
    ordered: bool = False
    weights: Any = None
    tuning: Any = None

    def __post_init__(self) -> None:
        check_flag("ordered", self.ordered)


def run(query: Query, tables: Mapping[str, Any], options: RunOptions) -> tuple[pa.Table, BatchRun]:
    """The joined table."""
    read = _read(query, tables)
    found, done = _join(query, read, options, scored=True)
    rows, data = found.rows, list(read.values())
    threads = threads_for(options.threads, len(rows[0]))
    table = done.bound.gather(data, rows, threads, found.scores.of(rows, threads))
    if not query.sides.plain:
        table = with_unmatched(done.bound, table, table_fetch(data), found.left)
        if found.order is not None:
            table = table.take(cast(Any, pa.array(found.order)))
    return table, done


def indices(
    query: Query, tables: Mapping[str, Any], options: RunOptions
) -> tuple[dict[str, I64], BatchRun]:
    """Row numbers of the members of every result."""
    found, done = _join(query, _read(query, tables), options, scored=False)
    rows = found.rows
    if not query.sides.plain:
        rows = numbers(done.bound, rows, found.left)
        rows = rows if found.order is None else [taken(members, found.order) for members in rows]
    return dict(zip(query.given, rows, strict=True)), done


def _read(query: Query, tables: Mapping[str, Any]) -> dict[str, pa.Table]:
    """Tables in the order of the streams; what does not belong is left for bind() to refuse."""
    if not isinstance(tables, Mapping):
        raise QueryError(
            f"tables is a {type(tables).__name__}; give a dictionary with a table for each stream:"
            f" {', '.join(query.names)}"
        )
    read = read_tables(query, tables)
    return {name: read[name] for name in (*query.names, *read) if name in read}


def _join(
    query: Query, tables: Mapping[str, pa.Table], options: RunOptions, *, scored: bool
) -> tuple[Joined, BatchRun]:
    whole, before = _bound(query, {name: table.schema for name, table in tables.items()})
    bound = whole if scored else whole.without_scores()
    hosts = asked_hosts(bound, options)
    data = list(tables.values())
    total = max(table.num_rows for table in data)
    threads = threads_for(options.threads, total)
    if hosts is not None and options.threads is not None:
        raise QueryError(
            f"threads={threads} and hosts={hosts.count}: every host is a thread; give one of them"
        )
    if query.sides.combined(len(query.streams)):
        return _combined(query, tables, options, whole)
    prepared = [bound.prepare(number, table) for number, table in enumerate(data)]
    if counts_rows(query):
        for number, one in enumerate(prepared):
            bound.time_column(number).refuse_least(one.rows, None, 0)
    spec = bound.spec_with(table_fetch(data))
    streams = [one.rows for one in prepared]
    cluster = None
    kept = bound.spec.kept
    lonely = None if kept is None else Lonely(kept, together=not (scored or options.ordered))
    with AS_OWN_ERRORS, progress_bar(options.progress, "joining", "rows") as report:
        if hosts is None:
            rows, found, scores = batch.join_rows(
                spec, streams, threads=threads, progress=report, before=before, lonely=lonely
            )
        else:
            rows, found, scores, cluster = join_on_hosts(spec, streams, hosts, report)
    joined = Joined(rows, scores)
    if lonely is not None:
        joined.rows, joined.left = whole_results(streams, rows, lonely)
        found.results = len(joined.rows[0]) + sum(len(some) for _, some in joined.left)
        if options.ordered:
            members = numbers(bound, joined.rows, joined.left)
            joined.order = in_order_of_time(bound, prepared, members)
    elif options.ordered:
        joined.rows = _by_time(prepared, rows)
    elif hosts is not None and hosts.count > 1:  # who finds a result depends on measured loads
        joined.rows = _by_members([one.rows for one in prepared], rows)
    rejected = {
        name: np.empty(0, np.int64) if one.null_time is None else np.flatnonzero(one.null_time)
        for name, one in zip(query.names, prepared, strict=True)
    }
    counts = {name: table.num_rows for name, table in tables.items()}
    counts_alone = {} if lonely is None else lonely.counts
    unmatched = {query.names[stream]: count for stream, count in counts_alone.items()}
    return joined, BatchRun(whole, found, rejected, counts, cluster, unmatched)


def _combined(
    query: Query, tables: Mapping[str, pa.Table], options: RunOptions, bound: BoundQuery
) -> tuple[Joined, BatchRun]:
    """Combinations for which other streams have rows that fit, or have none."""
    last: list[BatchRun] = []

    def of_part(asked: Query) -> dict[str, I64]:
        own = {name: tables[name] for name in asked.names}
        rows, done = indices(asked, own, replace(options, ordered=False))
        last.append(done)
        return rows

    found = combinations(query, [len(table) for table in tables.values()], of_part)
    joined = Joined(found, Scores(bound.spec, [], None))
    prepared = [bound.prepare(number, table) for number, table in enumerate(tables.values())]
    if options.ordered:
        joined.order = in_order_of_time(bound, prepared, numbers(bound, joined.rows, []))
    return joined, _run_of_parts(bound, last, len(joined.rows[0]))


def _run_of_parts(bound: BoundQuery, parts: list[BatchRun], results: int) -> BatchRun:
    """What the joins did that say what comes out; the plan is that of the last."""
    counts = {name: rows for part in parts for name, rows in part.rows_in.items()}
    rejected = {name: rows for part in parts for name, rows in part.rejected.items()}
    run = replace(parts[-1].run, results=results)
    return BatchRun(bound, run, rejected, counts, parts[-1].cluster, parts=parts)


def _bound(
    query: Query, schemas: Mapping[str, pa.Schema]
) -> tuple[BoundQuery, batch.JoinRun | None]:
    """The query bound to its tables' schemas; with the last run if that was bound to the same."""
    last = query.runs.last()
    if last is None or not last.bound.fits(schemas):
        return query.bind(schemas), None
    return last.bound, last.run if last.cluster is None and last.run.small else None


def threads_for(threads: int | None, rows: int) -> int:
    """As many threads as asked for; None: as many as there are cores and enough rows for."""
    if threads is None:
        return max(1, min(len(os.sched_getaffinity(0)), rows // ROWS_PER_THREAD))
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise QueryError(f"threads={threads!r}: give a number of threads, 1 or more, or None")
    return threads


def _by_time(prepared: list[Prepared], rows: list[I64]) -> list[I64]:
    """Results by their own time T, then by their members in the order of the streams.

    Members stand in the total order of rows: by time, then by arrival.
    """
    times = [one.rows.time for one in prepared]
    latest = taken(times[0], rows[0])
    for time, members in zip(times[1:], rows[1:], strict=True):
        np.maximum(latest, taken(time, members), out=latest)
    keys = [_places(time, members) for time, members in zip(times, rows, strict=True)]
    order = sorting_by([*reversed(_as_few(keys, list(map(len, times)))), latest])
    return [taken(members, order) for members in rows]


def _by_members(streams: list[Rows], rows: list[I64]) -> list[I64]:
    """Results by the row of the first stream, then of the second, and so on."""
    order = sorting_by([*reversed(_as_few(rows, list(map(len, streams))))])
    return [taken(members, order) for members in rows]


def _places(time: I64, members: I64) -> I64:
    """Where members stand among all rows of their stream, by time and then by arrival."""
    if in_order(time):
        return members
    order, _ = sorting(time)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return taken(places, members)


def _as_few(keys: list[I64], sizes: list[int]) -> list[I64]:
    """Keys 0 .. size - 1, the first of which decides first, as keys of several together."""
    few, room = [keys[0]], sizes[0]
    for key, size in zip(keys[1:], sizes[1:], strict=True):
        if room * size <= INT64_MAX:
            few[-1] = few[-1] * size + key
            room *= size
        else:
            few.append(key)
            room = size
    return few
