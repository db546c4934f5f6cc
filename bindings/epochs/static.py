"""Frames that do not grow, among those that do: their rows are there before the first epoch.

They lie in one file, as if one slot had kept them, and are read by the slots that own them.  No
more of them will come, so they hold nobody back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from windjoin.arrow.packing import as_schema
from windjoin.arrow.places import at_place
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.job import Job
from windjoin.epochs.packing import usable_rows
from windjoin.epochs.requested import OWN
from windjoin.epochs.slotfile import ALONE, MERGED, SlotWriter
from windjoin.epochs.sums import sum_of
from windjoin.kernels.spec import Bools, Rows

BEFORE = -1  # the epoch that their rows are of
_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


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
    summed: list[pa.Table | pa.RecordBatch] = [pa.table({"streams": sorted(tables)})]
    low: list[int | None] = [None] * job.streams
    high: list[int | None] = [None] * job.streams
    for stream, table in sorted(tables.items()):
        rows, times, alone = _usable(job, stream, table)
        summed += [rows, alone]
        if len(alone):
            writer.add(ALONE, stream, alone, 0, 0)
        if len(rows):
            low[stream], high[stream] = int(times[0]), int(times[-1])
            writer.add(MERGED, stream, rows, int(times[0]), int(times[-1]))
    folder = f"static-{sum_of(*summed)}"  # of values: other releases of Arrow write other files
    job.log.put(f"{folder}/0", writer.finish(()))
    count = sum(section.rows for section in writer.sections if not section.apart)
    known = Static(tuple(sorted(tables)), folder, tuple(low), tuple(high), writer.size, count)
    return replace(job, static=known)


def _usable(
    job: Job, stream: int, table: pa.Table
) -> tuple[pa.RecordBatch, np.ndarray, pa.RecordBatch]:
    """Rows that can be part of a result, in order of time; and others that come out."""
    schema, name = job.plan.schema(stream), job.plan.query.names[stream]
    read = pa.schema([field for field in schema if field.name not in OWN])
    batches = [as_schema(batch, read, name) for batch in table.to_batches()]
    whole = _in_one_order(pa.Table.from_batches(batches, read))
    for own in schema.names[len(read) :]:
        whole = whole.append_column(own, pa.array(np.arange(-1, -1 - len(whole), -1), pa.int64()))
    none = pa.RecordBatch.from_pylist([], schema)
    if not whole.num_rows:
        return none, np.empty(0, np.int64), none
    rows = whole.combine_chunks().to_batches()[0]
    with at_place(f"the batch DataFrame of stream {name!r}"):
        prepared = job.plan.bound.prepare(stream, rows).rows
    usable = usable_rows(job, stream, rows, prepared)
    chosen = np.arange(len(rows)) if usable is None else np.flatnonzero(usable)
    chosen = chosen[np.argsort(prepared.time[chosen], kind="stable")]
    alone = none
    if prepared.usable is not None and job.asked is not None and stream in job.asked.alone:
        places = np.flatnonzero(~prepared.usable & _present(prepared))
        alone = rows.take(arrow_array(places, pa.int64()))
    return rows.take(arrow_array(chosen, pa.int64())), prepared.time[chosen], alone


def _in_one_order(table: pa.Table) -> pa.Table:
    """Rows by all their values: Spark collects them in any order."""
    keys = [_key_of(column) for column in table.columns]
    names = [str(number) for number in range(len(keys))]
    order = pc.sort_indices(pa.table(keys, names), [(name, "ascending") for name in names])
    return table.take(order).combine_chunks()


def _key_of(column: pa.ChunkedArray[Any]) -> Any:
    """What tells values apart that differ in a bit."""
    kind = column.type
    if pa.types.is_floating(kind):  # the zeros are equal, and every NaN is a NaN
        return column.combine_chunks().view(_BITS[kind.bit_width])
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return pa.array([repr(value) for value in column.to_pylist()], pa.string())
    return column


def _present(rows: Rows) -> Bools:
    return np.ones(len(rows), np.bool_) if rows.present is None else rows.present
