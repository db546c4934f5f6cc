"""Rows of an epoch become segments on their way to their slots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.arrow.packing import Gathered, as_schema, one_batch
from windjoin.arrow.places import at_place
from windjoin.arrow.routes import Copies
from windjoin.arrow.segments import SegmentWriter, arrow_array
from windjoin.binding import Prepared
from windjoin.epochs.hopping import sent
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.requested import OWN
from windjoin.errors import QueryError
from windjoin.kernels.spec import I64, Bools, Rows
from windjoin.layout import plain_type

COUNTS = -2  # in place of a stream number: what was counted
REJECTED = -16  # minus the stream: rows that are not joined
ALONE = -40  # minus the stream: rows that come out though they can meet none
EPOCH_BITS, PART_BITS, ROW_BITS = 18, 13, 32  # of a row's identity in its stream
_COUNTED = ("stream", "rows", "late", "null_time", "unmatchable", "newest")
COUNTED = pa.schema([pa.field(name, pa.int64()) for name in _COUNTED])
REASON = "rejected_as"


def number_bits() -> int:
    """Of a row's identity, below its epoch."""
    return PART_BITS + ROW_BITS


def rejected_schema(job: Job, stream: int) -> pa.Schema:
    """Rows that are not joined, and why."""
    schema = job.whole[stream] if job.whole else job.plan.schema(stream)
    plain = [field.with_type(plain_type(field.type)) for field in schema if field.name not in OWN]
    return pa.schema([*plain, pa.field(REASON, pa.string())])


def usable_rows(job: Job, stream: int, rows: pa.RecordBatch, own: Rows) -> Bools | None:
    """Rows of a stream that can be part of what slots find; None: all."""
    parts = () if job.asked is None else job.asked.parts
    found: Bools | None = None
    for streams, plan in parts:
        if stream in streams:
            usable = plan.bound.prepare(streams.index(stream), rows).rows.usable
            if usable is None:
                return None
            found = usable if found is None else found | usable
    return found if parts else own.usable


def pack_epoch(
    batches: Iterable[pa.RecordBatch],
    job: Job,
    manifest: Manifest,
    streams: Sequence[int],
    partition: int,
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Segments of the rows of an epoch, and counts of them for slot 0.

    ``partition``: a number that no other call in this epoch has.  ``names``: of the columns, if not
    those that the batches have.
    """
    packers = [_Packer(job, manifest, stream, partition, names) for stream in streams]
    for batch in batches:
        for packer in packers:
            yield from packer.add(batch)
    for packer in packers:
        yield from packer.finish()


class _Packer:
    def __init__(
        self, job: Job, manifest: Manifest, stream: int, partition: int, names: Sequence[str] | None
    ) -> None:
        self.job, self.manifest, self.stream, self.partition = job, manifest, stream, partition
        self.names = names
        self.plan = job.plan
        self.schema = self.plan.schema(stream)
        self.numbers = [name for name in self.schema.names if name in OWN]
        self.read = pa.schema([field for field in self.schema if field.name not in OWN])
        asked = job.asked
        self.gives_alone = asked is not None and stream in asked.alone
        limits = self.plan.limits
        number = partition * len(self.plan.query.names) + stream
        self.writer = SegmentWriter(stream, number, limits)
        self.refused = SegmentWriter(REJECTED - stream, number, limits)
        self.alone = SegmentWriter(ALONE - stream, number, limits)
        self.rows = self.late = self.null_time = self.unmatchable = 0
        self.newest: int | None = None
        self._gathered = Gathered(limits)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._gathered.add(batch):
            yield from self._send()

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._send()
        yield from self.writer.finish()
        yield from self.alone.finish()
        yield from self.refused.finish()
        if self.rows:
            yield from self._counted()

    def _send(self) -> Iterator[pa.RecordBatch]:
        if not self._gathered.rows:
            return
        name = self.plan.query.names[self.stream]
        given = self._all(self._gathered.take())
        first = self.rows
        rows = as_schema(given, self.read, name)
        self.rows += len(rows)
        if self.numbers:
            rows = self._with_numbers(rows, first)
        with at_place(f"epoch {self.manifest.epoch}, partition {self.partition} of its frame"):
            prepared = self.plan.bound.prepare(self.stream, rows, first)
        times = prepared.rows.time
        timed = None if prepared.null_time is None else ~prepared.null_time
        good = self._classify(times, timed)
        usable = usable_rows(self.job, self.stream, rows, prepared.rows)
        if usable is not None:
            matched: Bools | None = usable if good is None else usable & good
            assert matched is not None
            self.unmatchable += (len(rows) if good is None else int(good.sum())) - int(
                matched.sum()
            )
        else:
            matched = good
        if usable is not None and self.gives_alone:
            yield from self._alone(rows, prepared, good)
        if good is not None and not good.all():
            yield from self._refuse(given, good, timed, times)
        chosen = np.arange(len(rows)) if matched is None else np.flatnonzero(matched)
        if len(chosen):
            own = self.manifest.own
            if own.units.once is None:
                copies = own.copies(self.stream, prepared.rows, chosen)
            else:
                copies = sent(self.plan, own, self.stream, times[chosen], chosen)
            yield from self.writer.write(rows, times, copies)

    def _all(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        """As one: what has to be done for each batch is dear where they are small."""
        whole = one_batch(batches, batches[0].schema)
        if self.names is None:
            return whole
        return pa.RecordBatch.from_arrays(whole.columns, names=list(self.names))

    def _alone(
        self, rows: pa.RecordBatch, prepared: Prepared, good: Bools | None
    ) -> Iterator[pa.RecordBatch]:
        """Send rows that can meet none to a slot that lets them out."""
        own = prepared.rows
        assert own.usable is not None
        alone = ~own.usable
        for mask in (own.present, good):
            alone = alone if mask is None else alone & mask
        places = np.flatnonzero(alone)
        slot = self.partition % self.manifest.slots
        copies = Copies(places, np.full(len(places), slot, np.int32))
        yield from self.alone.write(rows, own.time, copies)

    def _classify(self, times: I64, timed: Bools | None) -> Bools | None:
        """Which rows have a time and are not late; None: all."""
        known = times if timed is None else times[timed]
        if len(known):
            latest = int(known.max())
            self.newest = latest if self.newest is None else max(self.newest, latest)
        if timed is not None:
            self.null_time += len(times) - int(timed.sum())
        mark = self.manifest.watermarks[self.stream]
        if mark is None:
            return timed
        good: Bools = times >= mark
        if timed is not None:
            good = good & timed
        self.late += len(known) - int(good.sum())
        return good

    def _refuse(
        self, given: pa.RecordBatch, good: Bools, timed: Bools | None, times: I64
    ) -> Iterator[pa.RecordBatch]:
        """Send rows that are not joined to slot 0, if anybody wants them."""
        if self.job.rejected is None:
            return
        places = np.flatnonzero(~good)
        schema = rejected_schema(self.job, self.stream)
        own = pa.schema([field for field in schema if field.name != REASON])
        name = self.plan.query.names[self.stream]
        rows = as_schema(given, own, name)
        taken = rows.take(arrow_array(places, pa.int64()))
        late = np.ones(len(places), np.bool_) if timed is None else timed[places]
        reasons = pa.array(np.where(late, "late", "null time"), pa.string())
        refused = pa.RecordBatch.from_arrays([*taken.columns, reasons], schema=schema)
        yield from self.refused.write(refused, times[places], _to_first(len(places)))

    def _with_numbers(self, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Rows that may be one and the same are told apart by epoch, partition and place."""
        if self.partition >= 1 << PART_BITS or first + len(rows) > 1 << ROW_BITS:
            raise QueryError(
                f"partition {self.partition} with {first + len(rows)} rows; an epoch"
                f" may have {1 << PART_BITS} partitions of {1 << ROW_BITS} rows; coalesce the frame"
            )
        epoch = self.manifest.epoch % (1 << EPOCH_BITS)
        start = (epoch << PART_BITS + ROW_BITS) + (self.partition << ROW_BITS) + first
        numbers = pa.array(np.arange(start, start + len(rows)))
        columns = [*rows.columns, *(numbers for _ in self.numbers)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _counted(self) -> Iterator[pa.RecordBatch]:
        counts = (self.stream, self.rows, self.late, self.null_time, self.unmatchable, self.newest)
        row: Any = pa.RecordBatch.from_arrays(
            [pa.array([count], pa.int64()) for count in counts], schema=COUNTED
        )
        number = self.partition * len(self.plan.query.names) + self.stream
        writer = SegmentWriter(COUNTS, number, self.plan.limits)
        yield from writer.write(row, np.zeros(1, np.int64), _to_first(1))
        yield from writer.finish()


def _to_first(rows: int) -> Copies:
    return Copies(np.arange(rows), np.zeros(rows, np.int32))
