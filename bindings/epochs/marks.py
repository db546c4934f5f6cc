"""What a slot knows of partners: a file of marks for each slot and epoch, beside its rows.

An *item* is a row of a kept stream, or a combination of rows, known by the identities of its rows
and its deadline.  Sections are in order of deadlines, so that a flush reads only what it asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.arrow.segments import arrow_array
from windjoin.epochs.manifest import Entry
from windjoin.epochs.slotfile import SlotFile, SlotSection, SlotWriter, read_slot
from windjoin.epochs.storage import Folder
from windjoin.kernels.keys import new_space
from windjoin.kernels.spec import I64, Bools
from windjoin.pyx.encoding.keys import KeySpace

MATCHED = "matched"  # items that have a partner, or came out because they have
WAITING = "waiting"  # combinations as they will come out, found in this epoch
WAITING_ON = "waiting on"  # the same, of earlier epochs
DEADLINE = "deadline"
BEGIN, FOREVER = -(2**63), 2**63 - 1

Items = list[I64]  # deadlines, then the identity of the row of each stream


def file_name(folder: str, slot: int) -> str:
    """Where the marks of a slot lie."""
    return f"{folder}/{slot}.marks"


def min_mark(watermarks: Sequence[int | None]) -> int:
    """The least watermark."""
    return min(BEGIN if mark is None else mark for mark in watermarks)


def item_schema(streams: int) -> pa.Schema:
    """Deadline and identities."""
    names = [DEADLINE, *(f"row{number}" for number in range(streams))]
    return pa.schema([(name, pa.int64()) for name in names])


def once(items: Sequence[Items], streams: int) -> Items:
    """All items, each once, in order of their deadlines."""
    columns = [np.concatenate(parts) for parts in zip(*items, strict=True)]
    if not columns:
        return [np.empty(0, np.int64) for _ in range(1 + streams)]
    order = np.lexsort(columns[::-1])
    columns = [column[order] for column in columns]
    new = np.ones(len(order), np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return [column[new] for column in columns]


def add_items(writer: SlotWriter, kind: str, family: int, items: Items) -> None:
    """A section of items, in order of deadlines."""
    if len(items[0]):
        arrays = [arrow_array(column, pa.int64()) for column in items]
        schema = item_schema(len(items) - 1)
        rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
        writer.add(kind, family, rows, int(items[0][0]), int(items[0][-1]))


class Seen:
    """Items, to ask which of others are not among them."""

    def __init__(self, streams: int) -> None:
        self._spaces = [new_space("int64") for _ in range(streams)]
        self._pairs = [new_space("int64") for _ in range(streams - 1)]

    def fresh(self, rows: Sequence[I64]) -> Bools:
        """Where items are for the first time; they are among the others from then on."""
        last: KeySpace = self._pairs[-1] if self._pairs else self._spaces[0]
        before = last.n_codes
        codes = self._codes(rows)
        places = np.flatnonzero(codes >= before)
        _, firsts = np.unique(codes[places], return_index=True)
        new = np.zeros(len(codes), np.bool_)
        new[places[firsts]] = True
        return new

    def _codes(self, rows: Sequence[I64]) -> Any:
        codes: Any = self._spaces[0].encode(np.ascontiguousarray(rows[0]))
        for space, pairs, column in zip(self._spaces[1:], self._pairs, rows[1:], strict=True):
            own: Any = space.encode(np.ascontiguousarray(column))
            codes = pairs.encode((codes.astype(np.int64) << 32) | own.astype(np.int64))
        return codes


def among(rows: Sequence[I64], others: Sequence[I64]) -> Bools:
    """Which items are among others; both by the identities of their rows."""
    if len(rows) == 1:
        found: Bools = np.isin(rows[0], others[0])
        return found
    seen = Seen(len(rows))
    known = int(seen.fresh(others).sum())
    codes = seen._codes(rows)
    return np.asarray(codes < known, np.bool_)


class MarksOfEntry:
    """The marks that the slots of an epoch left."""

    def __init__(self, log: Folder, entry: Entry, slots: Iterable[int]) -> None:
        self.entry = entry
        there = [] if entry.epoch < 0 or not entry.marks else slots
        self.files = [read_slot(log, file_name(entry.folder, s)) for s in there if s < entry.slots]

    def items(self, kind: str, family: int, streams: int, low: int, high: int) -> Iterator[Items]:
        """Items of a kind with deadlines in ``[low, high)``."""
        schema = item_schema(streams)
        for file, section in self.sections((kind,), family):
            if section.high >= low and section.low < high:
                rows = file.rows(section, schema)
                columns: Items = [
                    np.asarray(column.to_numpy(zero_copy_only=True)) for column in rows.columns
                ]
                first, last = np.searchsorted(columns[0], [low, high])
                yield [column[first:last] for column in columns]

    def sections(self, kinds: Sequence[str], family: int) -> Iterator[tuple[SlotFile, SlotSection]]:
        """Sections of some kinds."""
        for file in self.files:
            for section in file.footer.sections:
                if section.kind in kinds and section.stream == family:
                    yield file, section
