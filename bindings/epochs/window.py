"""What a slot reads of the log: the rows of its window, by stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Entry, Manifest
from windjoin.epochs.slotfile import Section, SlotFile, read_slot
from windjoin.kernels.spec import I64

Pieces = list[list[pa.RecordBatch]]  # by stream


class Window:
    """The entries of a manifest as one slot has them."""

    def __init__(self, job: Job, manifest: Manifest, slot: int) -> None:
        self.job, self.manifest, self.slot = job, manifest, slot
        self.schemas = [job.plan.schema(stream) for stream in range(job.streams)]

    def pieces(self, entries: Sequence[Entry] | None = None, *, prune: bool = True) -> Pieces:
        """The rows of some entries, all if not given; each piece is in order of time.

        ``prune``: without rows that no row to come can meet.
        """
        found: Pieces = [[] for _ in self.schemas]
        for entry in self.manifest.window if entries is None else entries:
            for stream, rows in self._of(entry):
                kept = self._pruned(stream, rows) if prune else rows
                if len(kept):
                    found[stream].append(kept)
        return found

    def moved(self, entry: Entry) -> bool:
        """Whether rows of an entry may lie in files of other slots."""
        known = [time for time in (*entry.low, *entry.high) if time is not None]
        if not known:
            return False
        then, now = self.manifest.of(entry), self.manifest.own
        return not then.same(now, min(known), max(known))

    def _of(self, entry: Entry) -> Iterator[tuple[int, pa.RecordBatch]]:
        log = self.job.log
        if not self.moved(entry):
            if self.slot >= entry.slots:
                return  # it is newer than the entry
            file = read_slot(log, f"{entry.folder}/{self.slot}")
            yield from self._sections(file)
            return
        for slot in range(entry.slots):
            for stream, rows in self._sections(read_slot(log, f"{entry.folder}/{slot}")):
                own = self._own(entry, slot, stream, rows)
                yield (
                    stream,
                    rows if len(own) == len(rows) else rows.take(arrow_array(own, pa.int64())),
                )

    def _sections(self, file: SlotFile) -> Iterator[tuple[int, pa.RecordBatch]]:
        for section in file.footer.sections:
            if not section.apart and not self._gone(section):
                yield section.stream, file.rows(section, self.schemas[section.stream])

    def _gone(self, section: Section) -> bool:
        horizon = self.manifest.horizon(section.stream)
        return horizon is not None and section.high < horizon

    def _own(self, entry: Entry, slot: int, stream: int, rows: pa.RecordBatch) -> I64:
        """Rows that this slot owns now, of those whose copy in that file is the one that counts."""
        prepared = self.job.plan.bound.prepare(stream, rows).rows
        every = np.arange(len(rows))
        then, now = self.manifest.of(entry), self.manifest.own
        counts = then.first(stream, prepared, every) == slot
        return np.flatnonzero(counts & now.owned(stream, prepared, every, self.slot))

    def _pruned(self, stream: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        horizon = self.manifest.horizon(stream)
        if horizon is None:
            return rows
        times = self.job.plan.bound.prepare(stream, rows).rows.time
        first = int(np.searchsorted(times, np.int64(horizon), "left"))
        return rows.slice(first) if first else rows


def table_of(pieces: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Pieces as one table."""
    return pa.Table.from_batches(pieces, schema)
