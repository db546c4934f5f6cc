"""Frames that do not grow, among those that do: their rows are there before the first epoch.

They lie in one file, as if one slot had kept them, and are read by the slots that own them.  No
more of them will come, so they hold nobody back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from windjoin.arrow.packing import as_schema
from windjoin.arrow.places import at_place
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.job import Job
from windjoin.epochs.slotfile import MERGED, SlotWriter

BEFORE = -1  # the epoch that their rows are of


@dataclass(frozen=True, slots=True)
class Static:
    """Rows of streams that do not grow."""

    streams: tuple[int, ...]
    folder: str  # beside the logs of queries
    low: tuple[int | None, ...]
    high: tuple[int | None, ...]
    bytes: int
    rows: int


def with_static(job: Job, tables: Mapping[int, pa.Table]) -> Job:
    """The job with rows of some streams, which are written to its folder."""
    if not tables:
        return job
    writer = SlotWriter(0)
    low: list[int | None] = [None] * job.streams
    high: list[int | None] = [None] * job.streams
    for stream, table in sorted(tables.items()):
        rows, times = _usable(job, stream, table)
        if len(rows):
            low[stream], high[stream] = int(times[0]), int(times[-1])
            writer.add(MERGED, stream, rows, int(times[0]), int(times[-1]))
    parts = writer.finish(())
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    folder = f"static-{digest.hexdigest()[:24]}"
    job.log.put(f"{folder}/0", parts)
    count = sum(section.rows for section in writer.sections)
    known = Static(tuple(sorted(tables)), folder, tuple(low), tuple(high), writer.size, count)
    return replace(job, static=known)


def _usable(job: Job, stream: int, table: pa.Table) -> tuple[pa.RecordBatch, np.ndarray]:
    """Rows that can be part of a result, in order of time."""
    schema, name = job.plan.schema(stream), job.plan.query.names[stream]
    batches = [as_schema(batch, schema, name) for batch in table.to_batches()]
    whole = pa.Table.from_batches(batches, schema).combine_chunks()
    if not whole.num_rows:
        return pa.RecordBatch.from_pylist([], schema), np.empty(0, np.int64)
    rows = whole.to_batches()[0]
    with at_place(f"the batch DataFrame of stream {name!r}"):
        prepared = job.plan.bound.prepare(stream, rows).rows
    chosen = np.arange(len(rows)) if prepared.usable is None else np.flatnonzero(prepared.usable)
    chosen = chosen[np.argsort(prepared.time[chosen], kind="stable")]
    return rows.take(arrow_array(chosen, pa.int64())), prepared.time[chosen]
