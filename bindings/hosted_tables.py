"""Whole tables joined on hosts of this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from windjoin.clustered import ClusterJoin
from windjoin.kernels import batch
from windjoin.kernels.order import best_order
from windjoin.kernels.row_windows import with_row_windows
from windjoin.kernels.scores import Scores
from windjoin.kernels.similarity import SAMPLE_ROWS, with_sampled
from windjoin.kernels.spec import I64, JoinSpec, Rows
from windjoin.kernels.statistics import measure
from windjoin.kernels.varlen import spread_varlen
from windjoin.pyx.base.crew import surely
from windjoin.strategies import Hosts


def join_on_hosts(
    spec: JoinSpec, rows: Sequence[Rows], hosts: Hosts, progress: batch.Progress | None
) -> tuple[list[I64], batch.JoinRun, Scores, dict[str, Any]]:
    """Row numbers of every result of whole tables, its scores, and what the hosts did."""
    spec, rows = with_row_windows(spec, rows)
    statistics = with_sampled(
        measure(spec, list(rows)), spec, spread_varlen(spec, rows, SAMPLE_ROWS)
    )
    bare = replace(spec, scores=(), kept=None)  # they are computed once all results are there
    join = ClusterJoin(bare, hosts, statistics=statistics, span=_span(rows))
    try:
        join.begin()
        for stream, part in enumerate(rows):
            join.load(stream, part)
        total = sum(map(len, rows))
        if progress is not None:
            join.cluster.progress = lambda done: progress(done, total)
        found = join.flush()
        if progress is not None:
            progress(total, total)
    finally:
        surely(join.close)
    usable = tuple(len(part) if part.usable is None else int(part.usable.sum()) for part in rows)
    run = batch.JoinRun(best_order(spec, statistics), statistics, usable, hosts.count)
    run.results = len(found[0])
    return found, run, Scores.of_sides(spec, join.windows), join.report()


def _span(rows: Sequence[Rows]) -> int:
    """How much time lies between the first and the last row."""
    times = [part.time if part.usable is None else part.time[part.usable] for part in rows]
    ends = [(int(time.min()), int(time.max())) for time in times if len(time)]
    return max((last for _, last in ends), default=0) - min((first for first, _ in ends), default=0)
