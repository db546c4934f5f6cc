"""Rows that left memory together: a generation, in a unit of state, by partition group and time.

A unit of kind "generation" has a section for each stream with the columns of a unit of rows, but
without those of the user's, which lie in pages by arrival number; and ``row``, the arrival number,
and ``group``.  A section is made of blocks, each in order of group and then of time, so that the
rows of some groups, or within one group those of a stretch of time, are slices of a block where it
lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.kernels.spec import I64, Rows, StreamSpec
from windjoin.kernels.stored import Exporter
from windjoin.state.rows import plain_columns, row_arrays, row_fields, rows_of
from windjoin.state.unit import Unit, UnitWriter

BLOCK_ROWS = 1 << 16
RESIDENT = 2**62  # the epoch in which a row left memory that is there

Groups = Callable[[int, I64], I64]  # of rows of a stream, by number in its window


@dataclass(frozen=True, slots=True)
class DiskRows:
    """Some rows of one stream on disk, in order of group, then of time."""

    batch: pa.RecordBatch
    plain: list[Any]  # its columns without texts and lists as arrays, the times first; else none
    time: I64
    group: Any
    row: I64
    left: int  # the epoch in which its rows left memory
    last: tuple[int, int]  # the greatest arrival number, the latest time
    first: int  # the earliest time

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows [first, stop) of a block."""

    block: DiskRows
    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first

    def cut(self, groups: I64) -> list[Slice]:
        """Rows of groups [first, second), [second, third) and so on."""
        at = (np.searchsorted(self.group, groups) + self.first).tolist()
        return [Slice(self.block, first, stop) for first, stop in pairwise(at)]

    def between(self, low: int, high: int) -> Slice:
        """The rows with low <= time <= high; all are of one group."""
        time = self.time
        first = int(np.searchsorted(time, low)) if low > time[0] else 0
        stop = int(np.searchsorted(time, high, "right")) if high < time[-1] else len(time)
        return Slice(self.block, self.first + first, self.first + max(first, stop))

    @property
    def time(self) -> I64:
        """Times of the rows."""
        return self.block.time[self.first : self.stop]

    @property
    def group(self) -> Any:
        """Groups of the rows."""
        return self.block.group[self.first : self.stop]

    @property
    def row(self) -> I64:
        """Arrival numbers of the rows."""
        return self.block.row[self.first : self.stop]


Part = list[Slice]  # of one stream, none of them empty


def size_of(part: Part) -> int:
    """Rows of a part."""
    return sum(map(len, part))


def loaded(spec: StreamSpec, part: Part) -> Rows:
    """Rows of a part, for the kernels."""
    columns = len(spec.columns)
    if all(one.block.plain for one in part):  # Arrow takes longer for many slices than for rows
        each = [[column[one.first : one.stop] for column in one.block.plain] for one in part]
        whole: list[Any] = [np.concatenate(column) for column in zip(*each, strict=True)]
        return Rows(whole[0], whole[1 : 1 + columns], whole[1 + columns :])
    batches = [one.block.batch.slice(one.first, len(one)) for one in part]
    table = pa.Table.from_batches(batches).combine_chunks()
    return rows_of(spec, table.to_batches()[0])


@dataclass(slots=True)
class Generation:
    """A unit on disk, or in memory, with rows of all streams."""

    unit: Unit
    left: int
    blocks: list[list[DiskRows]]  # by stream
    needed_until: int  # results of a later time have none of its rows
    first: list[int | None]  # by stream, the least arrival number
    groups: set[int]

    @property
    def rows(self) -> int:
        """Rows of all streams."""
        return sum(len(block) for blocks in self.blocks for block in blocks)


def write_generation(
    writer: UnitWriter,
    specs: Sequence[StreamSpec],
    exporters: Sequence[Exporter],
    chosen: Sequence[tuple[I64, I64, I64]],
) -> None:
    """Write rows of every stream: (numbers in the window, arrival numbers, groups)."""
    extra = [pa.field("row", pa.int64()), pa.field("group", pa.int32())]
    for number, (rows, arrivals, groups) in enumerate(chosen):
        schema = pa.schema([*row_fields(specs[number]), *extra])
        with writer.section(str(number), schema) as section:
            for at in range(0, len(rows), BLOCK_ROWS):
                some = slice(at, at + BLOCK_ROWS)
                for batch in _block(
                    exporters[number], rows[some], arrivals[some], groups[some], schema
                ):
                    section.write_batch(batch)


def _block(
    exporter: Exporter, rows: I64, arrivals: I64, groups: I64, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    order = _sorting(exporter.times(rows), groups.astype(np.int16))
    rows = rows[order]
    arrays = row_arrays(exporter.rows(rows))
    arrays += [pa.array(arrivals[order]), pa.array(groups[order].astype(np.int32))]
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _sorting(times: I64, groups: Any) -> I64:
    """Places in order of group, then of time; mostly rows come in order of time already."""
    if bool((times[1:] >= times[:-1]).all()):
        return np.argsort(groups, kind="stable")
    return np.lexsort((times, groups))


def read_generation(unit: Unit, left: int, specs: Sequence[StreamSpec]) -> Generation:
    """The blocks of a unit, where they lie."""
    blocks = []
    for number in range(len(specs)):
        batches = unit.table(str(number)).to_batches()
        names = plain_columns(specs[number])
        blocks.append([_read(batch, left, names) for batch in batches if batch.num_rows])
    needed_until = max(
        (
            block.last[1] + spec.window
            for spec, of_stream in zip(specs, blocks, strict=True)
            for block in of_stream
        ),
        default=-(2**63),
    )
    first = [
        min((int(block.row.min()) for block in of_stream), default=None) for of_stream in blocks
    ]
    groups = {g for one in blocks for block in one for g in _distinct(block.group)}
    return Generation(unit, left, blocks, needed_until, first, groups)


def _distinct(ordered: Any) -> list[int]:
    """The values of what is in order.

    >>> _distinct(np.array([2, 2, 5]))
    [2, 5]
    """
    found: list[int] = ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))].tolist()
    return found


def _read(batch: pa.RecordBatch, left: int, names: Sequence[str]) -> DiskRows:
    time, group, row = (batch.column(name).to_numpy() for name in ("time", "group", "row"))
    ends = (int(row.max()), int(time.max()))
    plain = [batch.column(name).to_numpy() for name in names]
    return DiskRows(batch, plain, time, group, row, left, ends, int(time.min()))
