"""``nearest=`` cut into epochs: the best partners of rows that can get no other one.

A pair is completed by its later row: partners of that are earlier rows of the other stream.  As
soon as that stream has come past it, all of them lie in the log.  With ``direction=`` partners are
those of rows of the first stream, as soon as the second has come past what these look for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from windjoin.arrow.blocks import BlockCounts
from windjoin.arrow.packing import less
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.marks import BEGIN, FOREVER
from windjoin.epochs.requested import ID
from windjoin.epochs.window import SlotWindow
from windjoin.kernel_errors import AS_OWN_ERRORS
from windjoin.kernels import batch
from windjoin.kernels.spec import I64, Bools, Rows
from windjoin.output import table_fetch

MOST_ROWS = 1 << 16  # of one batch of results


def nearest_pairs(
    job: Job, manifest: Manifest, window: SlotWindow, new: Sequence[pa.Table], counts: BlockCounts
) -> Iterator[pa.RecordBatch]:
    """Pairs of the rows that have become final in this epoch with their best partners."""
    ends = [_final_before(job, manifest.watermarks, stream) for stream in (0, 1)]
    starts = [_final_before(job, manifest.before, stream) for stream in (0, 1)]
    if all(end is None for end in ends):
        return
    earlier = as_before(job, manifest, window.slot)
    tables, fresh = zip(
        *(_rows(job, earlier, stream, new[stream]) for stream in (0, 1)), strict=True
    )
    bound = job.plan.bound
    prepared = [bound.prepare(stream, table).rows for stream, table in enumerate(tables)]
    final: list[Bools] = []
    for stream, (rows, own) in enumerate(zip(prepared, fresh, strict=True)):
        start, end = starts[stream], ends[stream]
        if end is None:
            final.append(np.zeros(len(rows), np.bool_))
            continue
        since = BEGIN if start is None else start
        before = rows.time < end if end <= FOREVER else np.ones(len(rows), np.bool_)
        final.append(before & (own | (rows.time >= min(since, FOREVER)) & (since <= FOREVER)))
    if not any(rows.any() for rows in final):
        return
    low = min(
        int(rows.time[own].min()) for rows, own in zip(prepared, final, strict=True) if own.any()
    )
    kept, final, prepared = _from(job, low, tables, final)
    spec = bound.spec_with(table_fetch(kept))
    with AS_OWN_ERRORS:
        found, run, scores = batch.join_rows(spec, prepared)
    counts.comparisons += run.comparisons
    times = [rows.time[own] for rows, own in zip(prepared, found, strict=True)]
    # of equal times the row of the second stream is the later
    second = (times[1] >= times[0]) & (job.plan.query.direction is None)
    done = np.flatnonzero(np.where(second, final[1][found[1]], final[0][found[0]]))
    counts.results += len(done)
    for first in range(0, len(done), MOST_ROWS):
        chosen = [rows[done[first : first + MOST_ROWS]] for rows in found]
        out = bound.gather(kept, chosen, scores=scores.of(chosen))
        yield from out.combine_chunks().to_batches()


def as_before(job: Job, manifest: Manifest, slot: int) -> SlotWindow:
    """The window as the watermarks of the epoch before left it: what became final needs it."""
    entries = (*manifest.window, *manifest.leaving)
    before = manifest.before or (None,) * job.streams
    return SlotWindow(job, replace(manifest, watermarks=before, window=entries), slot)


def _final_before(job: Job, watermarks: Sequence[int | None], stream: int) -> int | None:
    """Rows of a stream before that time get no other partner; None: all may."""
    other = watermarks[1 - stream] if watermarks else None
    if other is None:
        return None
    if job.plan.query.direction is None:
        # of equal times the row of the first stream is the earlier one
        return other + (stream == 0)
    # rows of the first stream get partners that may come as late as their window ends
    return None if stream else other if other == FOREVER else other - job.windows[0]


def _rows(job: Job, window: SlotWindow, stream: int, new: pa.Table) -> tuple[pa.Table, Bools]:
    """All rows of a stream, in order of time and arrival; which of them are new."""
    schema = window.schemas[stream]
    old = window.pieces()[stream]
    table = pa.Table.from_batches([*old, *new.to_batches()], schema).combine_chunks()
    fresh = np.arange(len(table)) >= sum(map(len, old))
    if not len(table):
        return table, fresh
    times = job.plan.bound.prepare(stream, table).rows.time
    order = np.lexsort([table.column(ID).to_numpy(), times])
    return table.take(arrow_array(order, pa.int64())), fresh[order]


def _from(
    job: Job, low: int, tables: Sequence[pa.Table], final: Sequence[Bools]
) -> tuple[list[pa.Table], list[Bools], list[Rows]]:
    """Rows that those which are final, from a time on, can meet."""
    kept: list[pa.Table] = []
    flags: list[Bools] = []
    rows: list[Rows] = []
    for stream, (table, own) in enumerate(zip(tables, final, strict=True)):
        times: I64 = job.plan.bound.prepare(stream, table).rows.time
        since = int(less(np.array([low]), job.windows[stream])[0])
        first = int(np.searchsorted(times, since, "left"))
        kept.append(table.slice(first))
        flags.append(own[first:])
        rows.append(job.plan.bound.prepare(stream, kept[-1]).rows)
    return kept, flags, rows
