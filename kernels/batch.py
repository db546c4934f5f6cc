"""Join whole tables in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from windjoin.kernels.equality import Equality
from windjoin.kernels.hops import pipeline
from windjoin.kernels.keys import encode_tables
from windjoin.kernels.nearest import candidates, of_doubles
from windjoin.kernels.order import Order, best_order
from windjoin.kernels.records import Records, encode_wides, slice_wide, take_bytes, take_wide
from windjoin.kernels.side import Table
from windjoin.kernels.similarity import with_sampled
from windjoin.kernels.spec import (
    F64,
    I64,
    ArrayColumn,
    Bools,
    BytesColumn,
    JoinSpec,
    Nearest,
    Opaque,
    Rows,
    SetColumn,
)
from windjoin.kernels.statistics import Statistics, measure
from windjoin.kernels.threads import in_threads
from windjoin.pyx.column import ColumnView, in_order
from windjoin.pyx.lists import KeyLists
from windjoin.pyx.output import Output, release
from windjoin.pyx.pipeline import Pipeline

ROWS_OF_A_PART = 400_000  # so many are worth indexes of their own: a burst is shared out
ROWS_OF_A_SMALL_PART = 250_000  # their lists by key lie in nearer caches, in memory just used
MOST_TWICE = 0.25  # rows in two small parts, of all
FEW_ROWS = 2048  # of two streams, at most; planning anew would take as long as joining them

Progress = Callable[[int, int], None]  # rows of the starting stream done, and in all


@dataclass
class Run:
    """What a batch run found out about itself."""

    order: Order
    statistics: Statistics
    rows: tuple[int, ...]  # usable rows per stream
    threads: int = 1
    hops: list[dict[str, Any]] = field(default_factory=list)  # measured, one per step of the order
    results: int = 0

    @property
    def comparisons(self) -> int:
        """Candidates that were looked at."""
        return sum(hop["proposed"] for hop in self.hops)


@dataclass
class Sorted:
    """Usable rows of a stream in time order, and where each came from."""

    time: I64
    columns: list[I64 | F64]
    keys: list[I64 | BytesColumn]
    origin: I64 | None  # original row numbers; None: they are these
    wides: list[Records] = field(default_factory=list)
    contents: Sequence[SetColumn | ArrayColumn] = ()  # of the wide columns, not in time order

    def part(self, first: int, last: int) -> list[I64 | BytesColumn]:
        """Keys of rows [first, last)."""
        return [
            BytesColumn(key.offsets[first : last + 1], key.data)
            if isinstance(key, BytesColumn)
            else key[first:last]
            for key in self.keys
        ]

    def part_wides(self, first: int, last: int) -> list[SetColumn | ArrayColumn]:
        """Wide columns of rows [first, last)."""
        if self.origin is None:
            return [slice_wide(content, first, last) for content in self.contents]
        return [take_wide(content, self.origin[first:last]) for content in self.contents]


def join_rows(
    spec: JoinSpec,
    rows: Sequence[Rows],
    *,
    threads: int = 1,
    progress: Progress | None = None,
    before: Run | None = None,
) -> tuple[list[I64], Run]:
    """Row numbers of every result, one array per stream; their order has no meaning.

    ``before``: the last run of the same spec, whose plan serves as few rows again.
    """
    records = encode_wides(spec, rows)
    streams = in_threads(threads, in_time_order, [*zip(rows, records, strict=True)])
    spec = _on_original_rows(spec, streams)
    sizes = tuple(len(stream.time) for stream in streams)
    if before is not None and _plan_serves(spec, before.statistics, sizes):
        run = Run(before.order, before.statistics, sizes)
    else:
        statistics = _statistics(spec, streams)
        run = Run(best_order(spec, statistics), statistics, sizes)
    job = _Job(spec, streams, run, progress)
    found = job.run(threads).finish()
    if spec.nearest is not None:
        found = _nearest(spec, spec.nearest, streams, found)
    for number, stream in enumerate(streams):
        if stream.origin is not None:
            found[number] = stream.origin[found[number]]
    run.results = len(found[0])
    return found, run


def _plan_serves(spec: JoinSpec, seen: Statistics, sizes: tuple[int, ...]) -> bool:
    """Whether an order made for rows like ``seen`` does for so many: no other could save much."""
    return (
        len(sizes) == 2
        and max(sizes) <= FEW_ROWS
        and all(size <= 2 * old <= 4 * size for size, old in zip(sizes, seen.rows, strict=True))
        and not any(isinstance(p, Opaque) for p in spec.predicates)  # these hold data
    )


def _statistics(spec: JoinSpec, streams: Sequence[Sorted]) -> Statistics:
    rows = [Rows(stream.time, stream.columns, stream.keys) for stream in streams]
    found = measure(spec, rows, ordered=True)
    return with_sampled(found, spec, [stream.wides for stream in streams])


def _nearest(
    spec: JoinSpec, nearest: Nearest, streams: Sequence[Sorted], found: list[I64]
) -> list[I64]:
    """Results with the best partners; in time order rows of equal times stand as they arrived."""
    views = [
        [(ColumnView(wide.start, 0), ColumnView(wide.length, 0)) for wide in stream.wides]
        for stream in streams
    ]
    times = streams[0].time[found[0]], streams[1].time[found[1]]
    pairs = candidates(spec, nearest, views, of_doubles(spec, nearest), found, times)
    best = pairs.best(nearest.most)
    return [best.left, best.right]


def _on_original_rows(spec: JoinSpec, streams: Sequence[Sorted]) -> JoinSpec:
    """Opaque predicates look rows up in the tables as they were handed in."""
    origins = {s: stream.origin for s, stream in enumerate(streams) if stream.origin is not None}

    def translated(predicate: Opaque) -> Opaque:
        def evaluate(rows: Mapping[int, I64]) -> Bools:
            return predicate.evaluate(
                {s: origins[s][number] if s in origins else number for s, number in rows.items()}
            )

        return replace(predicate, evaluate=evaluate)

    predicates = tuple(translated(p) if isinstance(p, Opaque) else p for p in spec.predicates)
    return replace(spec, predicates=predicates)


def in_time_order(rows: Rows, records: Sequence[Records] = ()) -> Sorted:
    """Drop unusable rows and sort the rest by time; equal times stay in order of arrival."""
    origin: I64 | None = None
    time = rows.time
    if rows.usable is not None and not rows.usable.all():
        origin = np.flatnonzero(rows.usable).astype(np.int64)
        time = time[origin]
    if not in_order(time):
        order = np.argsort(time, kind="stable").astype(np.int64)
        time = time[order]
        origin = order if origin is None else origin[order]
    if origin is None:
        return Sorted(time, rows.columns, rows.keys, None, list(records), rows.wides)
    columns = [column[origin] for column in rows.columns]
    keys = [
        take_bytes(key, origin) if isinstance(key, BytesColumn) else key[origin]
        for key in rows.keys
    ]
    wides = [wide.take(origin) for wide in records]
    return Sorted(time, columns, keys, origin, wides, rows.wides)


def _joined(parts: list[Output]) -> Output:
    """The results of all parts."""
    whole, *rest = sorted(parts, key=len, reverse=True)
    for part in rest:
        whole.append(part)
    return whole


class _Job:
    """One batch run, cut along the time of the starting stream into parts for threads."""

    def __init__(
        self, spec: JoinSpec, streams: list[Sorted], run: Run, progress: Progress | None
    ) -> None:
        self.spec = spec
        self.streams = streams
        self.run_info = run
        self.progress = progress
        self.lock = threading.Lock()
        self.done: dict[int, int] = {}
        self.pipelines: list[Pipeline] = []
        self.stopped = False

    def run(self, threads: int) -> Output:
        rows = len(self.streams[self.run_info.order.start].time)
        threads = max(1, min(threads, rows))
        self.run_info.threads = threads
        parts = self._parts(rows, threads)
        borders = [rows * p // parts for p in range(parts + 1)]
        outputs = [Output(len(self.streams)) for _ in range(threads)]

        def share(thread: int) -> None:
            for p in range(thread, parts, threads):
                self._part(p, borders[p], borders[p + 1], outputs[thread])

        in_threads(threads, share, [(thread,) for thread in range(threads)], stop=self._stop)
        return _joined(outputs)

    def _stop(self) -> None:
        with self.lock:
            self.stopped = True
            for one in self.pipelines:
                one.stopped = True

    def _parts(self, rows: int, threads: int) -> int:
        """In how many parts to join: small ones if they overlap little."""
        large = threads * (2 if threads > 1 and rows >= 2 * threads * ROWS_OF_A_PART else 1)
        if not all(isinstance(step.access, Equality) for step in self.run_info.order.steps):
            return large
        small = rows // ROWS_OF_A_SMALL_PART // threads * threads
        if small <= large:
            return large
        start, middle = self.run_info.order.start, small // 2
        first, last = rows * middle // small, rows * (middle + 1) // small
        twice = 0
        for s, (spec, stream) in enumerate(zip(self.spec.streams, self.streams, strict=True)):
            if s != start:
                begin, end = self._reach(first, last, spec.window, stream.time)
                twice += (end - begin) * small - len(stream.time)
        return small if twice <= MOST_TWICE * rows else large

    def _part(self, number: int, first: int, last: int, output: Output) -> Output:
        """Join rows [first, last) of the starting stream with all that can meet them."""
        order = self.run_info.order
        tables = self._tables(first, last)
        encode_tables(
            self.spec,
            tables,
            [
                s.part(t.first, t.first + len(t.time))
                for s, t in zip(self.streams, tables, strict=True)
            ],
        )
        by_key = self._start_by_key(tables)
        for hop, step in enumerate(order.steps):
            if self.stopped:
                raise KeyboardInterrupt("the join was stopped")
            in_time_order = hop == 0 and by_key is None
            load = step.access.load_for_start if in_time_order else step.access.load
            table = tables[step.stream]
            table.indexes[step.access.identity] = load(table)
        hops = pipeline(self.spec, order, tables)
        with self.lock:
            hops.stopped = self.stopped
            self.pipelines.append(hops)
        output.expect(last - first)
        hops.on_pulse = lambda done: self._report(number, done)
        try:
            if by_key is None:
                hops.run_range(first, last, output)
            else:
                hops.run_lists(by_key, output)
        except BaseException:
            output.discard()
            release()
            raise
        finally:
            hops.on_pulse = None  # it refers to this job; and the indexes can go now
            with self.lock:
                self.pipelines.remove(hops)
        self._report(number, last - first)
        self._add_measured(hops)
        return output

    def _start_by_key(self, tables: list[Table]) -> KeyLists | None:
        """Start rows key by key, where several hops ask by one and the same key.

        The lists of a key are then read one after the other, which is several times faster than
        jumping between the lists of all keys in time order.
        """
        order = self.run_info.order
        if len(order.steps) == 1:
            return None
        spaces = set()
        for step in order.steps:
            if not isinstance(step.access, Equality) or len(step.access.parts) != 1:
                return None
            spaces |= {(bound.space, bound.stream, bound.key) for bound, _ in step.access.parts}
            spaces |= {(own.space, own.stream, own.key) for _, own in step.access.parts}
        if len({space for space, _, _ in spaces}) != 1 or len(spaces) != len(tables):
            return None
        first = order.steps[0].access
        assert isinstance(first, Equality)  # as the others
        key = first.parts[0][0]
        table = tables[order.start]
        codes, count = table.codes[key.key], table.code_counts[key.key]
        return KeyLists.load(codes, table.time, count, table.first)

    def _tables(self, first: int, last: int) -> list[Table]:
        """The stretch of every stream that rows [first, last) of the starting stream can meet."""
        start = self.run_info.order.start
        wants_numbers = {s for pair in self.spec.distinct for s in pair}
        tables = []
        for s, (spec, stream) in enumerate(zip(self.spec.streams, self.streams, strict=True)):
            begin, end = 0, len(stream.time)
            if s == start:
                begin, end = first, last
            elif last - first < len(self.streams[start].time):
                begin, end = self._reach(first, last, spec.window, stream.time)
            numbers = None
            if s in wants_numbers:
                numbers = np.arange(len(stream.time)) if stream.origin is None else stream.origin
                numbers = numbers[begin:end]
            columns = [column[begin:end] for column in stream.columns]
            table = Table(spec, stream.time[begin:end], columns, numbers, begin)
            table.wides = [wide.take(slice(begin, end)) for wide in stream.wides]
            tables.append(table)
        return tables

    def _reach(self, first: int, last: int, window: int, time: I64) -> tuple[int, int]:
        """A member is at most its own window older and at most the starting window newer."""
        start = self.run_info.order.start
        own = self.streams[start].time
        if first == last:
            return 0, 0
        earliest = max(int(own[first]) - window, -(2**63))
        latest = min(int(own[last - 1]) + self.spec.streams[start].window, 2**63 - 1)
        return (
            int(np.searchsorted(time, earliest, "left")),
            int(np.searchsorted(time, latest, "right")),
        )

    def _report(self, number: int, done: int) -> None:
        if self.progress is not None:
            with self.lock:
                self.done[number] = done
                self.progress(
                    sum(self.done.values()), len(self.streams[self.run_info.order.start].time)
                )

    def _add_measured(self, hops: Pipeline) -> None:
        with self.lock:
            measured = hops.measured()
            if not self.run_info.hops:
                self.run_info.hops = measured
                return
            for total, one in zip(self.run_info.hops, measured, strict=True):
                for name in ("asked", "proposed", "kept"):
                    total[name] += one[name]
                total["filters"] = [
                    (seen + more_seen, kept + more_kept)
                    for (seen, kept), (more_seen, more_kept) in zip(
                        total["filters"], one["filters"], strict=True
                    )
                ]
