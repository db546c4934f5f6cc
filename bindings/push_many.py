"""Rows of several streams that are pushed together: joined in order of time, in stretches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.binding import Prepared
from windjoin.errors import QueryError
from windjoin.kernels.intake import LateSplit
from windjoin.kernels.spec import I64, Rows
from windjoin.kernels.varlen import slice_rows
from windjoin.kernels.window import LONG_AGO

STRETCH = 8192  # rows of all streams; fewer at a time cost more, and windows get no smaller


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one stream that are ready to be joined."""

    stream: int
    table: pa.Table
    prepared: Prepared
    late_split: LateSplit
    first: int  # arrival number of the first of them

    def progress(self, newest: int) -> I64:
        """The time of their stream after each of them; ``newest``: before the first."""
        time = self.prepared.rows.time
        ordered = self.late_split.ordered and self.late_split.late is None
        if ordered and self.prepared.null_time is None:
            return time
        bad = np.zeros(len(time), np.bool_)
        for mask in (self.late_split.late, self.prepared.null_time):
            if mask is not None:
                bad |= mask
        return np.maximum(np.maximum.accumulate(np.where(bad, LONG_AGO, time)), newest)

    def late_split_between(self, start: int, stop: int, newest: int) -> LateSplit:
        """What the clock said of rows [start, stop), after which it stands at ``newest``."""
        late = None if self.late_split.late is None else self.late_split.late[start:stop]
        late = late if late is not None and late.any() else None
        return LateSplit(newest, self.late_split.ordered, late, self.late_split.watermark)


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Rows [start, stop) of a batch; their stream stands at ``newest`` after them."""

    batch: Batch
    start: int
    stop: int
    newest: int

    def rows(self) -> tuple[int, Rows, LateSplit]:
        """What `Intake.push` takes."""
        batch = self.batch
        if self.start == 0 and self.stop == len(batch.table):
            return batch.stream, batch.prepared.rows, batch.late_split
        rows = slice_rows(batch.prepared.rows, self.start, self.stop)
        return batch.stream, rows, batch.late_split_between(self.start, self.stop, self.newest)


def whole_batches(batches: Sequence[Batch]) -> list[BatchPart]:
    """All batches, uncut."""
    return [BatchPart(b, 0, len(b.table), b.late_split.newest) for b in batches]


def check_tables(tables: object, names: Sequence[str]) -> None:
    """Refuse what is not a table for each of some streams."""
    if not isinstance(tables, Mapping):
        raise QueryError(
            f"push_many got a {type(tables).__name__}; give a dictionary with a table for each"
            f" stream that has new rows, of {', '.join(names)}"
        )


def stretches(batches: Sequence[Batch], newest: Sequence[int]) -> list[BatchPart]:
    """Parts of batches in the order in which they are to be joined.

    newest: where the stream of each batch stands before it
    """
    come = [(b, b.progress(n)) for b, n in zip(batches, newest, strict=True) if len(b.table)]
    if not come:
        return []
    longest = max((progress for _, progress in come), key=len)
    total = sum(len(progress) for _, progress in come)
    every = max(STRETCH * len(longest) // total, 1)
    cuts = longest[every - 1 : -1 : every] if total > STRETCH else longest[:0]
    stops = [[*np.searchsorted(progress, cuts, "right"), len(progress)] for _, progress in come]
    made, starts = [], [0] * len(come)
    for ends in zip(*stops, strict=True):
        parts = [
            (int(progress[start]), BatchPart(batch, start, int(stop), int(progress[stop - 1])))
            for (batch, progress), start, stop in zip(come, starts, ends, strict=True)
            if stop > start
        ]
        made += [stretch for _, stretch in sorted(parts, key=lambda part: part[0])]
        starts = list(map(int, ends))
    return made


def joined(found: Sequence[list[Any]]) -> list[Any]:
    """The results of all stretches: row numbers, and scores."""
    if len(found) == 1:
        return found[0]
    return [np.concatenate(columns) for columns in zip(*found, strict=True)]


def by_time(found: list[Any], batches: Sequence[Batch]) -> list[Any]:
    """Results in order of the newest time of their new rows; of equals as they were found."""
    latest = np.full(len(found[0]), LONG_AGO)
    for batch in batches:
        row = found[batch.stream] - batch.first
        new = row >= 0
        latest[new] = np.maximum(latest[new], batch.prepared.rows.time[row[new]])
    if (latest[1:] >= latest[:-1]).all():
        return found
    order = np.argsort(latest, kind="stable")
    return [column[order] for column in found]
