"""What a slot reads of the log: the rows of its window, by stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Entry, Manifest
from windjoin.epochs.slotfile import Footer, SlotFile, SlotSection, read_footer, read_slot
from windjoin.kernels.spec import I64

Pieces = list[list[pa.RecordBatch]]  # by stream
Part = Callable[[], pa.Table]  # rows of a stream, read when they are needed


class SlotWindow:
    """The entries of a manifest as one slot has them."""

    def __init__(self, job: Job, manifest: Manifest, slot: int) -> None:
        self.job, self.manifest, self.slot = job, manifest, slot
        self.schemas = [job.plan.schema(stream) for stream in range(job.streams)]
        self.read_rows = 0  # of the whole window, if it was read

    def pieces(
        self, entries: Sequence[Entry] | None = None, *, prune: bool = True, only: int | None = None
    ) -> Pieces:
        """The rows of some entries, all if not given; each piece is in order of time.

        ``prune``: without rows that no row to come can meet.  ``only``: of one stream.
        """
        found: Pieces = [[] for _ in self.schemas]
        for entry in self.manifest.window if entries is None else entries:
            for stream, rows in self._of(entry, only):
                kept = self._pruned(stream, rows) if prune else rows
                if len(kept):
                    found[stream].append(kept)
        return found

    def tables(self) -> list[pa.Table]:
        """The rows of all entries, by stream."""
        found = [table_of(p, s) for p, s in zip(self.pieces(), self.schemas, strict=True)]
        self.read_rows = sum(table.num_rows for table in found)
        return found

    @cached_property
    def held(self) -> tuple[int, int]:
        """Rows and bytes that the log has for this slot; of entries that moved its even share."""
        rows = size = 0
        for entry in self.manifest.window:
            if self.moved(entry):
                rows += entry.rows // self.manifest.slots
                size += entry.bytes // self.manifest.slots
            elif self.slot < entry.slots:
                for section in self._kept(read_footer(self.job.log, f"{entry.folder}/{self.slot}")):
                    rows += section.rows
                    size += section.length
        return rows, size

    def parts(self, stream: int, most: int) -> list[Part]:
        """The rows of a stream in parts of about so many bytes, none of which is read yet."""
        self.read_rows = self.held[0]
        groups: list[list[Entry]] = []
        size, room = 0, most * self.manifest.slots  # entries tell the bytes of all slots
        for entry in self.manifest.window:
            if not groups or size + entry.bytes > room:
                groups.append([])
                size = 0
            groups[-1].append(entry)
            size += entry.bytes
        found: list[Part] = []
        for entries in groups:
            count = max(1, -(-sum(entry.bytes for entry in entries) // room))
            found += [partial(self._part, stream, entries, n, count) for n in range(count)]
        return found

    def _part(self, stream: int, entries: Sequence[Entry], number: int, count: int) -> pa.Table:
        """One of several equal parts of the rows of some entries."""
        table = table_of(self.pieces(entries, only=stream)[stream], self.schemas[stream])
        first, last = (len(table) * n // count for n in (number, number + 1))
        return table.slice(first, last - first)

    def moved(self, entry: Entry) -> bool:
        """Whether rows of an entry may lie in files of other slots."""
        known = [time for time in (*entry.low, *entry.high) if time is not None]
        if not known:
            return False
        then, now = self.manifest.of(entry), self.manifest.own
        return not then.same(now, min(known), max(known))

    def _of(self, entry: Entry, only: int | None) -> Iterator[tuple[int, pa.RecordBatch]]:
        log = self.job.log
        if not self.moved(entry):
            if self.slot >= entry.slots:
                return  # it is newer than the entry
            file = read_slot(log, f"{entry.folder}/{self.slot}")
            yield from self._sections(file, only)
            return
        for slot in range(entry.slots):
            file = read_slot(log, f"{entry.folder}/{slot}")
            for stream, rows in self._sections(file, only):
                own = self._own(entry, slot, stream, rows)
                yield (
                    stream,
                    rows if len(own) == len(rows) else rows.take(arrow_array(own, pa.int64())),
                )

    def _sections(self, file: SlotFile, only: int | None) -> Iterator[tuple[int, pa.RecordBatch]]:
        for section in self._kept(file.footer):
            if only in (None, section.stream):
                yield section.stream, file.rows(section, self.schemas[section.stream])

    def _kept(self, footer: Footer) -> Iterator[SlotSection]:
        for section in footer.sections:
            if not section.apart and not self._gone(section):
                yield section

    def _gone(self, section: SlotSection) -> bool:
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
