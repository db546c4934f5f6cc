"""What a slot reads of the log: the rows of its window, by stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.asking import Reading
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Entry, Manifest
from windjoin.epochs.placing import UnitSlots
from windjoin.epochs.routing import MOST_UNITS, Routes
from windjoin.epochs.slotfile import NEW, Footer, SlotFile, SlotSection, read_footer, read_slot
from windjoin.kernels.spec import I64

Pieces = list[list[pa.RecordBatch]]  # by stream
Part = Callable[[], pa.Table]  # rows of a stream, read when they are needed


class SlotWindow:
    """The entries of a manifest as one slot has them."""

    def __init__(self, job: Job, manifest: Manifest, slot: int) -> None:
        self.job, self.manifest, self.slot = job, manifest, slot
        self.schemas = [job.plan.schema(stream) for stream in range(job.streams)]
        self.read_rows = 0  # of the whole window, if it was read
        self._read: dict[tuple[int, tuple[UnitSlots | None, ...]], pa.Table] = {}

    def pieces(
        self, entries: Sequence[Entry] | None = None, *, prune: bool = True,
        only: Reading | None = None,
    ) -> Pieces:  # fmt: skip
        """The rows of some entries, all if not given; each piece is in order of time.

        ``prune``: without rows that no row to come can meet.  ``only``: what is read of a stream,
        if not all that this slot owns.
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

    def read(self, reading: Reading) -> pa.Table:
        """The rows of one stream that this slot reads for some partial results."""
        key = reading.stream, reading.asked
        if key not in self._read:
            pieces = self.pieces(only=reading)[reading.stream]
            self._read[key] = table_of(pieces, self.schemas[reading.stream])
            self.read_rows += self._read[key].num_rows
        return self._read[key]

    def new(self, reading: Reading) -> pa.Table:
        """The same of the epoch's own rows, once all slots have written them."""
        found = []
        for slot in sorted({self.slot, *self._writers(reading)}):
            file = read_slot(self.job.log, f"{self.manifest.folder}/{slot}")
            for section in file.footer.sections:
                if (section.kind, section.stream) == (NEW, reading.stream):
                    rows = file.rows(section, self.schemas[reading.stream])
                    found.append(self._asked(rows, reading, self.manifest.own, slot))
        return table_of(found, self.schemas[reading.stream])

    def parts(self, stream: int, most: int, reading: Reading | None = None) -> list[Part]:
        """The rows of a stream in parts of about so many bytes, none of which is read yet."""
        only = Reading(self.manifest.own, stream, self.slot) if reading is None else reading
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
            found += [partial(self._part, only, entries, n, count) for n in range(count)]
        return found

    def _part(self, only: Reading, entries: Sequence[Entry], number: int, count: int) -> pa.Table:
        """One of several equal parts of the rows of some entries."""
        pieces = self.pieces(entries, only=only)[only.stream]
        table = table_of(pieces, self.schemas[only.stream])
        first, last = (len(table) * n // count for n in (number, number + 1))
        return table.slice(first, last - first)

    def moved(self, entry: Entry) -> bool:
        """Whether rows of an entry may lie in files of other slots."""
        known = [time for time in (*entry.low, *entry.high) if time is not None]
        if not known:
            return False
        then, now = self.manifest.of(entry), self.manifest.own
        return not then.same(now, min(known), max(known))

    def _of(self, entry: Entry, only: Reading | None) -> Iterator[tuple[int, pa.RecordBatch]]:
        if self.manifest.own.units.once is not None:
            yield from self._asked_of(entry, self._every if only is None else [only])
            return
        log, stream = self.job.log, None if only is None else only.stream
        if not self.moved(entry):
            if self.slot >= entry.slots:
                return  # it is newer than the entry
            file = read_slot(log, f"{entry.folder}/{self.slot}")
            yield from self._sections(file, stream)
            return
        for slot in range(entry.slots):
            file = read_slot(log, f"{entry.folder}/{slot}")
            for number, rows in self._sections(file, stream):
                own = self._own(entry, slot, number, rows)
                yield number, chosen(rows, own)

    @cached_property
    def _every(self) -> list[Reading]:
        """What this slot owns of all streams."""
        return [Reading(self.manifest.own, s, self.slot) for s in range(len(self.schemas))]

    def _asked_of(
        self, entry: Entry, readings: Sequence[Reading]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows of an entry by who reads them, in whichever slot's file they are."""
        then = self.manifest.of(entry)
        files: dict[int, list[Reading]] = {}
        for reading in readings:
            for slot in self._files(entry, then, reading):
                files.setdefault(slot, []).append(reading)
        for slot, asked in files.items():
            file = read_slot(self.job.log, f"{entry.folder}/{slot}")
            for section in self._kept(file.footer):
                for reading in asked:
                    if reading.stream == section.stream:
                        rows = file.rows(section, self.schemas[section.stream])
                        yield section.stream, self._asked(rows, reading, then, slot)

    def _files(self, entry: Entry, then: Routes, reading: Reading) -> Iterable[int]:
        """The slots whose files may have what is asked for."""
        low, high = entry.low[reading.stream], entry.high[reading.stream]
        length = reading.routes.units.length
        assert length is not None
        if low is None or high is None:
            return []
        first, last = low // length, high // length
        if last - first > MOST_UNITS:
            return range(entry.slots)
        units = np.arange(first, last + 1)
        asked = units[reading.own(units)]
        if then.units != reading.routes.units:
            return range(entry.slots) if len(asked) else []
        found: list[int] = np.unique(then.writers(reading.stream, asked)).tolist()
        return found

    def _writers(self, reading: Reading) -> set[int]:
        """The slots that write what is asked for in this epoch, if not the reader itself."""
        known = [one for one in reading.asked if one is not None and one.slots]
        if not known:
            return set()
        units = np.arange(min(one.first for one in known), max(one.stop for one in known))
        asked = units[reading.own(units)]
        return set(reading.routes.writers(reading.stream, asked).tolist())

    def _asked(
        self, rows: pa.RecordBatch, reading: Reading, then: Routes, slot: int
    ) -> pa.RecordBatch:
        """Of rows in the file of a slot, which are in order of time, those that are asked for."""
        if not len(rows):
            return rows
        length = reading.routes.units.length
        assert length is not None
        if then.units.once is None:  # several files may have a row
            prepared = self.job.plan.bound.prepare(reading.stream, rows).rows
            own = then.first(reading.stream, prepared, np.arange(len(rows))) == slot
            own &= reading.own(prepared.time // length)
        else:
            own = reading.own(self.times(reading.stream, rows) // length)
        return chosen(rows, np.flatnonzero(own))

    def times(self, stream: int, rows: pa.RecordBatch) -> I64:
        """Of rows in the log, none of which is without."""
        own = self.job.plan.bound.time_column(stream)
        values, valid = own.read(rows.column(own.column))
        return own.ticks(values, valid, 0)

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
        first = int(np.searchsorted(self.times(stream, rows), np.int64(horizon), "left"))
        return rows.slice(first) if first else rows


def chosen(rows: pa.RecordBatch, own: I64) -> pa.RecordBatch:
    """Rows at some places, ascending; as they lie if these are neighbours."""
    if len(own) and own[-1] - own[0] + 1 == len(own):
        return rows.slice(int(own[0]), len(own))
    return rows.take(arrow_array(own, pa.int64()))


def table_of(pieces: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Pieces as one table."""
    return pa.Table.from_batches(pieces, schema)
