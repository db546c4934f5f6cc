"""Windows that hold the last rows of a stream rather than a length of time.

A row leaves such a window when the n-th row after it comes, in the order of time, stream, arrival:
it *is held until* then.  So it is in a result with rows before that one only.  That is a comparison
of two columns, which are added to what the kernels are told: the time of a row, and the last time
that rows of other streams may have.  For indexes there is a window of time as well, as long as rows
are held in fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from windjoin.kernels.spec import I64, Bools, Dtype, InRowWindow, JoinSpec, Operand, Predicate, Rows
from windjoin.pyx.base.pieces import sorting

FOREVER = 2**63 - 1
ADDED = 3  # columns: time; until when rows of streams before, and of streams behind, may come


def counted(spec: JoinSpec) -> list[int]:
    """The streams with such windows."""
    return [s for s, stream in enumerate(spec.streams) if stream.rows]


def with_columns(spec: JoinSpec) -> JoinSpec:
    """What kernels are told, with the columns that are added and what is asked of them."""
    if not counted(spec):
        return spec
    first = [len(stream.columns) for stream in spec.streams]
    added: list[Dtype] = ["int64"] * ADDED
    streams = tuple(replace(stream, columns=(*stream.columns, *added)) for stream in spec.streams)
    asked: list[Predicate] = []
    for s in counted(spec):
        for k in range(len(streams)):
            if k == s:
                continue
            until = Operand(s, first[s] + (1 if k < s else 2))
            text = f"within the last {streams[s].rows:,} rows of {streams[s].name}"
            asked.append(InRowWindow(Operand(k, first[k]), until, text))
    return replace(spec, streams=streams, predicates=(*spec.predicates, *asked))


def until_columns(until: I64, left: Bools) -> list[I64]:
    """The added columns of that, of the time of the n-th row after each.

    left: rows after which that many have come; others stay for ever
    Of a stream before, a row of the very time of that n-th row still comes before it.
    """
    least = np.iinfo(np.int64).min  # of a row that is gone for all others
    return [until, until - (left & (until > least))]


def with_row_windows(spec: JoinSpec, rows: Sequence[Rows]) -> tuple[JoinSpec, Sequence[Rows]]:
    """The same join of whole tables without such windows: with columns, and windows of time."""
    if not counted(spec):
        return spec, rows
    latest = max((_latest(one) for one in rows), default=0)
    told, given, streams = with_columns(spec), [], []
    for stream, one in zip(told.streams, rows, strict=True):
        until, left = np.full(len(one), FOREVER), np.zeros(len(one), np.bool_)
        longest = stream.window
        if stream.rows:
            until, left, longest = _until(one, stream.rows, latest)
        streams.append(replace(stream, window=longest, rows=0))
        given.append(replace(one, columns=[*one.columns, one.time, *until_columns(until, left)]))
    return replace(told, streams=tuple(streams)), given


def _latest(rows: Rows) -> int:
    time = rows.time if rows.usable is None else rows.time[rows.usable]
    return int(time.max()) if len(time) else -(2**63)


def _until(rows: Rows, count: int, latest: int) -> tuple[I64, Bools, int]:
    """Until when each row is held, if not for ever; how long one is at most, up to ``latest``."""
    until, left = np.full(len(rows), FOREVER), np.zeros(len(rows), np.bool_)
    there = np.arange(len(rows)) if rows.present is None else np.flatnonzero(rows.present)
    order = there[sorting(rows.time[there])[0]]
    time = rows.time[order]
    until[order[:-count]] = time[count:]
    left[order[:-count]] = True
    return until, left, longest_held(time, until[order], latest)


def longest_held(time: I64, until: I64, latest: int) -> int:
    """For how long rows are held at most, up to ``latest``."""
    if not len(time):
        return 0
    held = np.minimum(until, latest)
    come = held > time
    if not come.any():
        return 0
    long = (held[come].view(np.uint64) - time[come].view(np.uint64)).max()
    return min(int(long), FOREVER)
