"""Rows of one stream that no row to come can meet: those that a slot owns, each once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from windjoin.arrow.packing import less
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Entry, Manifest
from windjoin.epochs.marks import BEGIN, FOREVER
from windjoin.epochs.slotfile import NEW, read_slot
from windjoin.epochs.window import SlotWindow
from windjoin.kernels.spec import I64


class Departing:
    """What leaves the windows of a stream as the watermarks come on."""

    def __init__(
        self, job: Job, manifest: Manifest, slot: int, window: SlotWindow, stream: int
    ) -> None:
        self.job, self.manifest, self.slot, self.window = job, manifest, slot, window
        self.stream = stream
        self.retention = job.retention[stream]
        self.local = manifest.own.units.finds_in_one_slot((stream,))

    def rows(self, low: int | None, high: int, new: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows whose deadline is in ``[low, high)``, or before ``high`` if nobody asked before.

        Of rows of this epoch all partners are known if these are in the same slot; else rows are
        asked about in the next.
        """
        since = BEGIN if low is None else low
        for entry in [*self.manifest.window, *self.manifest.leaving]:
            yield from self._of(entry, since, high)
        if self.local:
            for batch in new.to_batches():
                rows = self._between(batch, BEGIN, high)
                if len(rows):
                    yield self._owned(rows, None, self.slot)

    def _of(self, entry: Entry, since: int, high: int) -> Iterator[pa.RecordBatch]:
        moved = self.window.moved(entry)
        unasked = entry.epoch == self.manifest.epoch - 1 and not (
            self.manifest.of(entry).units.finds_in_one_slot((self.stream,))
        )
        slots = range(entry.slots) if moved else [self.slot]
        for slot in slots:
            if slot >= entry.slots:
                continue
            file = read_slot(self.job.log, f"{entry.folder}/{slot}")
            for section in file.footer.sections:
                if section.stream != self.stream or section.apart:
                    continue
                first = BEGIN if unasked and section.kind == NEW else since
                if first >= high or section.high + self.retention < first:
                    continue
                rows = file.rows(section, self.window.schemas[self.stream])
                rows = self._between(rows, first, high)
                own = self._owned(rows, entry if moved else None, slot)
                if len(own):
                    yield own

    def _between(self, rows: pa.RecordBatch, low: int, high: int) -> pa.RecordBatch:
        """Rows, which are in order of time, with deadlines in ``[low, high)``."""
        bounds = less(np.array([low, high]), self.retention)
        first, last = np.searchsorted(self._times(rows), bounds, "left").tolist()
        if high == FOREVER:  # of streams that have ended
            last = len(rows)
        return rows.slice(first, last - first)

    def _times(self, rows: pa.RecordBatch) -> I64:
        own = self.job.plan.bound.time_column(self.stream)
        values, valid = own.read(rows.column(own.column))
        return own.ticks(values, valid, 0)

    def _owned(self, rows: pa.RecordBatch, entry: Entry | None, slot: int) -> pa.RecordBatch:
        """Of rows in the file of a slot those that this slot has to ask about."""
        now = self.manifest.own
        if not len(rows) or (entry is None and now.units.one_slot(self.stream)):
            return rows
        prepared = self.job.plan.bound.prepare(self.stream, rows).rows
        every = np.arange(len(rows))
        mine = now.first(self.stream, prepared, every) == self.slot
        if entry is not None:
            mine &= self.manifest.of(entry).first(self.stream, prepared, every) == slot
        return rows.take(arrow_array(np.flatnonzero(mine), pa.int64()))
