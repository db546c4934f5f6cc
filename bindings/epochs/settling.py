"""What comes out of a slot where rows without partners do, or only what has some.

Results of the inner join say which items have a partner; that is written down at the end of an
epoch.  Items whose deadline the watermarks have passed can get none any more: those that no slot
has written down as matched come out of the slot that owns them now, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.arrow.packing import more
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.departing import Departing
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Entry, Manifest
from windjoin.epochs.marks import (
    BEGIN,
    FOREVER,
    MATCHED,
    WAITING,
    WAITING_ON,
    Items,
    MarksOfEntry,
    Seen,
    add_items,
    among,
    file_name,
    min_mark,
    once,
)
from windjoin.epochs.packing import number_bits
from windjoin.epochs.requested import COMBINED, ID, KEPT, SEMI, Family, Requested
from windjoin.epochs.slotfile import SlotWriter
from windjoin.epochs.window import SlotWindow
from windjoin.kernels.spec import I64, Bools
from windjoin.outer import unmatched
from windjoin.output import table_fetch

Batches = Iterator[pa.RecordBatch]


class Settling:
    """The end of an epoch in one slot."""

    def __init__(self, job: Job, manifest: Manifest, slot: int, window: SlotWindow) -> None:
        assert job.asked is not None
        self.job, self.manifest, self.slot, self.window = job, manifest, slot, window
        self.asked: Requested = job.asked
        self.schema = self.asked.bound.schema
        self.matched: list[list[Items]] = [[] for _ in self.asked.families]  # in this epoch
        self.waiting: list[pa.RecordBatch] = []  # combinations that others may fit
        self.seen: Seen | None = None
        self._primed = False  # `seen` knows what earlier epochs told
        self.writer = SlotWriter(slot)

    # -- results of the inner join ----------------------------------------------------------------

    def take(self, found: Iterable[pa.RecordBatch]) -> Batches:
        """What comes out as it is found."""
        shown = self.asked.shown
        for batch in found:
            items = self._items_of(batch, shown)
            if self.asked.form == SEMI:
                yield from self._first_ones(batch, items[0])
                continue
            for known, own in zip(self.matched, items, strict=True):
                known.append(once([own], len(own) - 1))
            if self.asked.form == KEPT:
                yield self._laid_out(batch)

    def take_combinations(self, found: Iterable[pa.RecordBatch]) -> Batches:
        """Combinations that there are: they come out, or wait for others that fit."""
        shown, (family,) = self.asked.shown, self.asked.families
        for batch in found:
            (items,) = self._items_of(batch, shown)
            new = self._unseen(items)
            chosen = (
                batch if new.all() else batch.take(arrow_array(np.flatnonzero(new), pa.int64()))
            )
            if not family.awaited:
                yield from self._given(chosen, [column[new] for column in items])
            elif len(chosen):
                self.waiting.append(self._with_deadlines(chosen, [c[new] for c in items]))

    def take_partners(self, found: Iterable[pa.RecordBatch]) -> None:
        """Combinations that others fit."""
        for batch in found:
            (items,) = self._items_of(batch, 0)
            self.matched[0].append(once([items], len(items) - 1))

    def _items_of(self, batch: pa.RecordBatch, first: int) -> list[Items]:
        """The items of each family that results are made of."""
        found = []
        for family in self.asked.families:
            count = len(family.streams)
            ids = [as_numbers(batch.column(first + n)) for n in range(count)]
            until = [
                self._deadlines(stream, batch.column(first + count + n))
                for n, stream in enumerate(family.streams)
            ]
            found.append([np.minimum.reduce(until), *ids])
            first += 2 * count
        return found

    def _deadlines(self, stream: int, column: Any) -> I64:
        own = self.job.plan.bound.time_column(stream)
        values, valid = own.read(column)
        return more(own.ticks(values, valid, 0), self.job.retention[stream])

    def _first_ones(self, batch: pa.RecordBatch, items: Items) -> Batches:
        new = self._unseen(items)
        chosen = batch if new.all() else batch.take(arrow_array(np.flatnonzero(new), pa.int64()))
        yield from self._given(chosen, [column[new] for column in items])

    def _given(self, batch: pa.RecordBatch, items: Items) -> Batches:
        if len(batch):
            self.matched[0].append(once([items], len(items) - 1))
            yield self._laid_out(batch)

    def _unseen(self, items: Items) -> Bools:
        """Items that have not come out before, or were not known to be any."""
        family = self.asked.families[0]
        if self.seen is None:
            self.seen = Seen(len(family.streams))
        old = np.logical_or.reduce([self._is_old(rows) for rows in items[1:]])
        if not self._primed and old.any():
            self._primed = True
            for known in self._known_before():
                self.seen.fresh(known[1:])
        return self.seen.fresh(items[1:])

    def _is_old(self, rows: I64) -> Bools:
        """Rows of earlier epochs."""
        old: Bools = (rows >> number_bits()) != self.manifest.epoch % (1 << 63 - number_bits())
        return old

    def _known_before(self) -> Iterator[Items]:
        """Items that came out in earlier epochs, or wait."""
        family = self.asked.families[0]
        streams = len(family.streams)
        for marks in self._marks(family):
            if not family.awaited:
                yield from marks.items(MATCHED, 0, streams, BEGIN, FOREVER)
            for file, section in marks.sections((WAITING, WAITING_ON), 0):
                rows = file.rows(section, self._waiting_schema)
                yield [as_numbers(column) for column in rows.columns[self.asked.shown :]]

    # -- what nothing can meet any more -----------------------------------------------------------

    def finish(self, new: Sequence[pa.Table], alone: dict[int, list[pa.RecordBatch]]) -> Batches:
        """Items without partners, and rows that can have none; then the marks are written."""
        for stream, pieces in sorted(alone.items()):
            for rows in pieces:
                yield from self._without(stream, rows)
        for number, family in enumerate(self.asked.families):
            if not family.awaited:
                continue
            if self.asked.form == COMBINED:
                yield from self._combinations_left(family)
            else:
                yield from self._rows_left(number, family, new[family.streams[0]])
        self._write()

    def _rows_left(self, number: int, family: Family, new: pa.Table) -> Batches:
        (stream,) = family.streams
        low, high = self._passed(family)
        if high is None:
            return
        departing = Departing(self.job, self.manifest, self.slot, self.window, stream)
        pieces = list(departing.rows(low, high, new))
        if not pieces:
            return
        known = self.matched[number]
        for marks in self._marks(family):
            known = [*known, *marks.items(MATCHED, number, 1, BEGIN, high)]
        matched = np.concatenate([items[1] for items in known]) if known else None
        for rows in pieces:
            if matched is not None:
                left = ~np.isin(as_numbers(rows.column(ID)), matched)
                rows = rows.take(arrow_array(np.flatnonzero(left), pa.int64()))
            yield from self._without(stream, rows)

    def _without(self, stream: int, rows: pa.RecordBatch) -> Batches:
        """Rows of one stream, with nulls for all others."""
        if not len(rows):
            return
        bound = self.asked.bound
        empty = [bound.schemas[name].empty_table() for name in self.asked.query.names]
        own = bound.schemas[self.asked.query.names[stream]]
        empty[stream] = pa.Table.from_batches([rows.select(own.names)])
        fetch = table_fetch(empty)
        out = unmatched(bound, fetch, stream, np.arange(len(rows)))
        yield from out.combine_chunks().to_batches()

    def _combinations_left(self, family: Family) -> Batches:
        low, high = self._passed(family)
        if high is None:
            return
        pieces = [self._between(rows, BEGIN, high) for rows in self.waiting]
        pieces += self._waiting_before(BEGIN if low is None else low, high)
        for rows in pieces:
            if len(rows):
                yield from self._unmatched_of(rows, family, high)

    def _unmatched_of(self, rows: pa.RecordBatch, family: Family, high: int) -> Batches:
        shown, streams = self.asked.shown, len(family.streams)
        ids = [as_numbers(column) for column in rows.columns[shown + 1 :]]
        known = list(self.matched[0])
        for marks in self._marks(family):
            known += marks.items(MATCHED, 0, streams, BEGIN, high)
        if known:
            others = once(known, streams)
            rows = rows.take(arrow_array(np.flatnonzero(~among(ids, others[1:])), pa.int64()))
        if len(rows):
            yield self._laid_out(rows)

    def _waiting_before(self, low: int, high: int) -> Batches:
        """Combinations of earlier epochs with deadlines in ``[low, high)`` that this slot has."""
        for entry in self._entries:
            slots = range(self.slot, entry.slots, self.manifest.slots)
            marks = MarksOfEntry(self.job.log, entry, slots)
            for file, section in marks.sections((WAITING, WAITING_ON), 0):
                if section.low < high and section.high >= low:
                    yield self._between(file.rows(section, self._waiting_schema), low, high)

    # -- watermarks, and what the log has ---------------------------------------------------------

    def _passed(self, family: Family) -> tuple[int | None, int | None]:
        """Deadlines before the first were passed earlier, those before the second are by now."""
        now = mark_of(self.manifest.watermarks, family)
        return mark_of(self.manifest.before, family), now

    @cached_property
    def _entries(self) -> list[Entry]:
        return [*self.manifest.window, *self.manifest.leaving]

    def _marks(self, family: Family) -> Iterator[MarksOfEntry]:
        """Marks that may tell of items of this slot."""
        alike = self._alike(family, self._entries)
        for entry in self._entries:
            slots = [self.slot] if alike else range(entry.slots)
            yield MarksOfEntry(self.job.log, entry, slots)

    def _alike(self, family: Family, entries: Sequence[Entry]) -> bool:
        """Whether all that is known of items of this slot was written down in this slot."""
        in_one = self.manifest.own.units.finds_in_one_slot(family.streams)
        return in_one and all(e.routes == self.manifest.routes for e in entries if e.epoch >= 0)

    # -- the file ---------------------------------------------------------------------------------

    def _write(self) -> None:
        for number, known in enumerate(self.matched):
            streams = len(self.asked.families[number].streams)
            if self.manifest.merge is not None:
                known = [*known, *self._merged(number, streams, self.manifest.merge)]
            add_items(self.writer, MATCHED, number, once(known, streams))
        if self.waiting:
            self._add_waiting(WAITING, self._in_order(self.waiting))
        if self.manifest.merge is not None and self.asked.form == COMBINED:
            for rows in self._merged_waiting(self.manifest.merge):
                self._add_waiting(WAITING_ON, rows)
        name = file_name(self.manifest.folder, self.slot)
        self.job.log.put(name, self.writer.finish(()))

    def _merged(self, number: int, streams: int, epochs: tuple[int, int]) -> Iterator[Items]:
        """Items that earlier epochs told of; of all slots if it may have been another."""
        family, merged = self.asked.families[number], self._to_merge(epochs)
        alike = self._alike(family, merged)
        keep_from = min_mark(self.manifest.watermarks)
        for entry in merged:
            marks = MarksOfEntry(self.job.log, entry, [self.slot] if alike else range(entry.slots))
            yield from marks.items(MATCHED, number, streams, keep_from, FOREVER)

    def _to_merge(self, epochs: tuple[int, int]) -> list[Entry]:
        return [e for e in self.manifest.window if epochs[0] <= e.epoch <= epochs[1]]

    def _merged_waiting(self, epochs: tuple[int, int]) -> Batches:
        keep_from = min_mark(self.manifest.watermarks)
        for entry in self._to_merge(epochs):
            slots = range(self.slot, entry.slots, self.manifest.slots)
            marks = MarksOfEntry(self.job.log, entry, slots)
            for file, section in marks.sections((WAITING, WAITING_ON), 0):
                rows = self._between(file.rows(section, self._waiting_schema), keep_from, None)
                if len(rows):
                    yield rows

    def _add_waiting(self, kind: str, rows: pa.RecordBatch) -> None:
        until = as_numbers(rows.column(self.asked.shown))
        self.writer.add(kind, 0, rows, int(until[0]), int(until[-1]))

    # -- batches ----------------------------------------------------------------------------------

    @cached_property
    def _waiting_schema(self) -> pa.Schema:
        """What comes out, then the deadline and the rows' identities."""
        (family,) = self.asked.families
        extra = [f"windjoin {n}" for n in range(1 + len(family.streams))]
        return pa.schema([*self.schema, *(pa.field(name, pa.int64()) for name in extra)])

    def _with_deadlines(self, batch: pa.RecordBatch, items: Items) -> pa.RecordBatch:
        arrays = [arrow_array(column, pa.int64()) for column in items]
        columns = [*batch.columns[: self.asked.shown], *arrays]
        return pa.RecordBatch.from_arrays(columns, schema=self._waiting_schema)

    def _in_order(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        table = pa.Table.from_batches(batches, self._waiting_schema).combine_chunks()
        until = as_numbers(table.column(self.asked.shown).chunk(0))
        order = np.argsort(until, kind="stable")
        return table.take(arrow_array(order, pa.int64())).combine_chunks().to_batches()[0]

    def _between(self, rows: pa.RecordBatch, low: int, high: int | None) -> pa.RecordBatch:
        """Rows with deadlines in ``[low, high)``."""
        until = as_numbers(rows.column(self.asked.shown))
        chosen = until >= low if high is None else (until >= low) & (until < high)
        return rows.take(arrow_array(np.flatnonzero(chosen), pa.int64()))

    def _laid_out(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch without what was carried along."""
        return pa.RecordBatch.from_arrays(batch.columns[: self.asked.shown], schema=self.schema)


def mark_of(watermarks: Sequence[int | None], family: Family) -> int | None:
    """Items of a family with deadlines before it get no partner any more; None: all may."""
    known = [watermarks[stream] for stream in family.awaited] if watermarks else [None]
    if any(mark is None for mark in known):
        return None
    return min(mark for mark in known if mark is not None)


def as_numbers(column: Any) -> I64:
    """An int64 column as an array."""
    return np.asarray(column.to_numpy(zero_copy_only=False))
