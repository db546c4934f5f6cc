"""Join whole tables in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from windjoin.kernels.asof import by_keys_alone, live_order, merged, nearest_in_time
from windjoin.kernels.hops import pipeline
from windjoin.kernels.keys import encode_tables
from windjoin.kernels.nearest import candidates, of_doubles
from windjoin.kernels.order import Order, best_order
from windjoin.kernels.outer import Lonely
from windjoin.kernels.parts import Parts, Range, cut, shared_key
from windjoin.kernels.row_windows import with_row_windows
from windjoin.kernels.scores import Scores
from windjoin.kernels.side import Table
from windjoin.kernels.similarity import with_sampled
from windjoin.kernels.sorting import Sorted, in_time_order
from windjoin.kernels.spec import I64, Bools, JoinSpec, Nearest, Opaque, Rows
from windjoin.kernels.statistics import Statistics, measure, unseen
from windjoin.kernels.threads import in_threads
from windjoin.kernels.varlen import encode_varlen
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.output import Output, release
from windjoin.pyx.base.pieces import taken
from windjoin.pyx.indexes.postings import KeyPostings
from windjoin.pyx.probing.pipeline import Pipeline

FEW_ROWS = 2048  # of two streams, at most; planning anew would take as long as joining them
MORE_THAN_EXPECTED = 8  # times as many candidates: a plan for other rows

Progress = Callable[[int, int], None]  # rows of the starting stream done, and in all


@dataclass
class JoinRun:
    """What a batch run found out about itself."""

    order: Order
    statistics: Statistics
    rows: tuple[int, ...]  # usable rows per stream
    threads: int = 1
    parts: tuple[int, str] = (1, "time")  # how many, and what they are stretches or groups of
    hops: list[dict[str, Any]] = field(default_factory=list)  # measured, one per step of the order
    reused: bool = False  # the plan of the run before
    by_key: bool = False  # start rows are taken key by key, not in order of time
    structures: list[set[str]] = field(default_factory=list)  # of the indexes, one per step
    close: set[int] = field(default_factory=set)  # key spaces that need no dictionary
    results: int = 0
    raised: bool = False  # a function has, for a pair that some condition let pass

    @property
    def comparisons(self) -> int:
        """Candidates that were looked at."""
        return sum(hop["proposed"] for hop in self.hops)

    def serves(self, sizes: tuple[int, ...]) -> bool:
        """Whether its plan does for so many rows, or they are too many or too few."""
        planned = zip(sizes, self.statistics.rows, strict=True)
        return all(size <= 2 * old <= 4 * size for size, old in planned)

    @property
    def small(self) -> bool:
        """Whether planning took as long as joining, and no other order could save much."""
        return len(self.rows) == 2 and max(self.rows) <= FEW_ROWS

    @property
    def as_expected(self) -> bool:
        """Whether rows were like those that it was planned for: no more was looked at."""
        expected = sum(step.partials * step.access.candidates for step in self.order.steps)
        return self.comparisons <= MORE_THAN_EXPECTED * expected + FEW_ROWS


def join_rows(
    spec: JoinSpec,
    rows: Sequence[Rows],
    *,
    threads: int = 1,
    progress: Progress | None = None,
    before: JoinRun | None = None,
    partial: bool = False,
    lonely: Lonely | None = None,
) -> tuple[list[I64], JoinRun, Scores]:
    """Row numbers of every result, one array per stream; their order has no meaning.

    What computes the scores of results keeps the records of the rows.
    ``before``: a run of the same query, whose plan serves for as many rows that are like its own.
    ``partial``: results have other conditions to meet yet, so that a function may raise for them:
    then `JoinRun.raised` is set.
    ``lonely``: gets the rows of kept streams that are in no result, or those that are in one where
    nothing else is wanted of results; these are not given then.
    """
    spec, rows = with_row_windows(spec, rows)
    varlen_rows = encode_varlen(spec, rows)
    streams = in_threads(threads, in_time_order, [*zip(rows, varlen_rows, strict=True)])
    spec = _on_original_rows(spec, streams)
    sizes = tuple(len(stream.time) for stream in streams)
    in_time = by_keys_alone(spec)
    if in_time:
        run = JoinRun(live_order(spec), unseen(spec), sizes)
    elif before is not None and before.serves(sizes):
        run = JoinRun(before.order.over(spec), before.statistics, sizes, reused=True)
    else:
        statistics = _statistics(spec, streams)
        run = JoinRun(best_order(spec, statistics, _start(spec)), statistics, sizes)
    run.threads = max(1, min(threads, sizes[run.order.start]))
    if in_time:
        return (
            _merged(spec, rows, streams, run, progress, lonely),
            run,
            Scores.of_varlen_rows(spec, varlen_rows),
        )
    parts = cut(spec, streams, run.order, run.statistics, run.threads)
    run.parts = len(parts.ranges), parts.by
    streams = list(parts.streams)  # those that were divided are not needed any more
    job = _Job(spec, parts, run, progress, partial)
    output = job.run()
    nearest = None
    if spec.nearest is not None:
        nearest = _nearest(spec, spec.nearest, streams, output.finish())
    if lonely is not None and spec.kept is not None:
        for stream in spec.kept.streams:
            lonely.look_at(stream, rows[stream], job.matched(stream, nearest, len(rows[stream])))
        if lonely.together and nearest is None:
            lonely.add_to(output)
    found = output.finish() if nearest is None else nearest
    run.results = len(found[0])
    return found, run, Scores.of_varlen_rows(spec, varlen_rows)


def _merged(
    spec: JoinSpec,
    rows: Sequence[Rows],
    streams: Sequence[Sorted],
    run: JoinRun,
    progress: Progress | None,
    lonely: Lonely | None,
) -> list[I64]:
    """Results where keys and time alone say who is a partner; ``rows``: as they came."""
    places = merged(spec, streams, run.threads, progress)
    found = [
        place if stream.origin is None else taken(stream.origin, place)
        for stream, place in zip(streams, places, strict=True)
    ]
    run.results = len(found[0])
    run.hops = [{"asked": len(streams[0].time), "proposed": run.results, "kept": run.results}]
    run.structures = [{"a merge in order of time"}]
    if lonely is not None and spec.kept is not None:
        for stream in spec.kept.streams:
            matched = np.zeros(len(rows[stream]), np.bool_)
            matched[found[stream]] = True
            lonely.look_at(stream, rows[stream], matched)
    return found


def _start(spec: JoinSpec) -> int | None:
    """The stream whose rows ask, as it is they of which it is wanted whether they have partners."""
    kept = spec.kept
    return kept.streams[0] if kept and len(kept.streams) == 1 and len(spec.streams) == 2 else None


def _gives_marks_only(spec: JoinSpec) -> bool:
    """Whether it is enough to know which rows are in a result; functions may raise for a result."""
    called = any(p.calls for p in spec.predicates)
    return spec.kept is not None and spec.kept.form != "pairs" and not called


def _statistics(spec: JoinSpec, streams: Sequence[Sorted]) -> Statistics:
    rows = [Rows(stream.time, stream.columns, stream.keys) for stream in streams]
    found = measure(spec, rows, ordered=True)
    return with_sampled(found, spec, [stream.varlen for stream in streams])


def statistics_of(spec: JoinSpec, rows: Sequence[Rows]) -> Statistics:
    """What whole tables, or samples of them, say of a query."""
    varlen_rows = encode_varlen(spec, rows)
    streams = [in_time_order(*one) for one in zip(rows, varlen_rows, strict=True)]
    return _statistics(_on_original_rows(spec, streams), streams)


def _nearest(
    spec: JoinSpec, nearest: Nearest, streams: Sequence[Sorted], found: list[I64]
) -> list[I64]:
    """Results with the best partners; in time order rows of equal times stand as they arrived.

    ``found``: where the rows stand in time order
    """
    views = [
        [(ColumnView(wide.start, 0), ColumnView(wide.length, 0)) for wide in stream.varlen]
        for stream in streams
    ]
    times = streams[0].time[found[0]], streams[1].time[found[1]]
    if nearest.direction is not None:
        best_rows = nearest_in_time(nearest, (found[0], found[1]), times)
        return [
            rows if stream.origin is None else stream.origin[rows]
            for stream, rows in zip(streams, best_rows, strict=True)
        ]
    pairs = candidates(spec, nearest, views, of_doubles(spec, nearest), found, times)
    best = pairs.best(nearest.most)
    return [
        rows if stream.origin is None else stream.origin[rows]
        for stream, rows in zip(streams, (best.left, best.right), strict=True)
    ]


def _on_original_rows(spec: JoinSpec, streams: Sequence[Sorted]) -> JoinSpec:
    """Opaque predicates look rows up in the tables as they were handed in."""
    origins = {s: stream.origin for s, stream in enumerate(streams) if stream.origin is not None}

    def translated(predicate: Opaque) -> Opaque:
        def original(rows: Mapping[int, I64]) -> dict[int, I64]:
            return {s: origins[s][number] if s in origins else number for s, number in rows.items()}

        return replace(
            predicate,
            evaluate=lambda rows: predicate.evaluate(original(rows)),
            call=lambda rows: predicate.call(original(rows)),
        )

    predicates = tuple(translated(p) if isinstance(p, Opaque) else p for p in spec.predicates)
    return replace(spec, predicates=predicates)


def _joined(parts: list[Output]) -> Output:
    """The results of all parts."""
    whole, *rest = sorted(parts, key=len, reverse=True)
    for part in rest:
        whole.append(part)
    return whole


class _Job:
    """One batch run, in parts for threads."""

    def __init__(
        self, spec: JoinSpec, parts: Parts, run: JoinRun, progress: Progress | None, partial: bool
    ) -> None:
        self.spec = spec
        self.partial = partial
        self.parts = parts
        self.keys = shared_key(spec, run.order)
        self.run_info = run
        self.progress = progress
        self.lock = threading.Lock()
        self.done: dict[int, int] = {}
        kept = spec.kept.streams if spec.kept is not None and spec.nearest is None else ()
        self.marks = {s: np.zeros(len(parts.streams[s].time), np.uint8) for s in kept}

    def matched(self, stream: int, nearest: list[I64] | None, count: int) -> Bools:
        """Which of all rows of a kept stream are in a result; ``nearest``: of these."""
        every = np.zeros(count, np.bool_)
        if nearest is not None:
            every[nearest[stream]] = True
            return every
        marks, origin = self.marks[stream].view(np.bool_), self.parts.streams[stream].origin
        if origin is None:
            return marks
        every[origin] = marks
        return every

    def run(self) -> Output:
        threads, ranges = self.run_info.threads, self.parts.ranges
        outputs = [Output(len(self.spec.streams)) for _ in range(threads)]

        def share(thread: int) -> None:
            for number in range(thread, len(ranges), threads):
                self._part(number, ranges[number], outputs[thread])

        in_threads(threads, share, [(thread,) for thread in range(threads)])
        return _joined(outputs)

    def _part(self, number: int, ranges: Sequence[Range], output: Output) -> None:
        """Join the rows of all streams that meet in one part."""
        order = self.run_info.order
        first, last = ranges[order.start]
        tables = self._tables(ranges)
        close = encode_tables(
            self.spec,
            tables,
            [s.part(*rows) for s, rows in zip(self.parts.streams, ranges, strict=True)],
        )
        by_key = self._start_by_key(tables)
        for hop, step in enumerate(order.steps):
            in_time_order = hop == 0 and by_key is None
            load = step.access.load_for_start if in_time_order else step.access.load
            table = tables[step.stream]
            table.indexes[step.access.identity] = load(table)
        self._note(tables, close, by_key is not None)
        hops = pipeline(self.spec, order, tables, [s.origin for s in self.parts.streams])
        if self.partial:
            hops.on_raised = None
        if self.spec.nearest is None:
            for s, stream in enumerate(self.parts.streams):
                if stream.origin is not None:
                    hops.number(s, ColumnView(stream.origin))
        for s, marks in self.marks.items():
            hops.mark(s, marks, _gives_marks_only(self.spec))
        output.expect(last - first)
        hops.on_progress = lambda done: self._report(number, done)
        try:
            if by_key is None:
                hops.run_range(first, last, output)
            else:
                hops.run_postings(by_key, output)
        except BaseException:
            output.discard()
            release()
            raise
        finally:
            hops.on_progress = hops.on_raised = None  # they refer to this job, and to indexes
        self._report(number, last - first)
        self._add_measured(hops)

    def _note(self, tables: list[Table], close: set[int], by_key: bool) -> None:
        """What was decided by the rows of a part, for explain()."""
        steps = self.run_info.order.steps
        with self.lock:
            self.run_info.structures = self.run_info.structures or [set() for _ in steps]
            for names, step in zip(self.run_info.structures, steps, strict=True):
                names.add(type(tables[step.stream].indexes[step.access.identity]).__name__)
            self.run_info.close |= close
            self.run_info.by_key |= by_key

    def _start_by_key(self, tables: list[Table]) -> KeyPostings | None:
        """Start rows key by key, where several hops ask by one and the same key.

        The lists of a key are then read one after the other, which is several times faster than
        jumping between the lists of all keys in time order.
        """
        order = self.run_info.order
        if len(order.steps) == 1 or self.keys is None:
            return None
        table, key = tables[order.start], self.keys[order.start]
        codes, count = table.codes[key], table.code_counts[key]
        return KeyPostings.load(codes, table.time, count, table.first)

    def _tables(self, ranges: Sequence[Range]) -> list[Table]:
        """The rows of one part."""
        wants_numbers = {s for pair in self.spec.distinct for s in pair}
        tables = []
        for s, (begin, end) in enumerate(ranges):
            stream = self.parts.streams[s]
            numbers = None
            if s in wants_numbers:
                numbers = np.arange(len(stream.time)) if stream.origin is None else stream.origin
                numbers = numbers[begin:end]
            columns = [column[begin:end] for column in stream.columns]
            table = Table(self.spec.streams[s], stream.time[begin:end], columns, numbers, begin)
            table.varlen = [wide.take(slice(begin, end)) for wide in stream.varlen]
            tables.append(table)
        return tables

    def _report(self, number: int, done: int) -> None:
        if self.progress is not None:
            with self.lock:
                self.done[number] = done
                start = self.run_info.order.start
                self.progress(sum(self.done.values()), self.run_info.rows[start])

    def _add_measured(self, hops: Pipeline) -> None:
        with self.lock:
            self.run_info.raised |= hops.raised
            measured = hops.measured()
            if not self.run_info.hops:
                self.run_info.hops = measured
                return
            for total, one in zip(self.run_info.hops, measured, strict=True):
                for name in ("asked", "proposed", "kept", "compared"):
                    total[name] += one[name]
                total["filters"] = [
                    (seen + more_seen, kept + more_kept)
                    for (seen, kept), (more_seen, more_kept) in zip(
                        total["filters"], one["filters"], strict=True
                    )
                ]
