"""The rows of one stream in pieces, in order of time, read as they are needed."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.datasets import FilePart, Scan, scan_of
from windjoin.errors import InputError
from windjoin.inputs import as_table
from windjoin.kernels.spec import I64
from windjoin.kinds import INT64_MAX
from windjoin.memory import Memory
from windjoin.pruning import where_may_hold
from windjoin.pyx.base.pieces import sorting
from windjoin.query import Query
from windjoin.state.spill_folder import SpillFolder

ROWS_AT_ONCE = 1 << 16
SORTED_SHARE = 4  # a run that is sorted in memory is that part of the limit
LEAST_RUN = 1 << 16  # rows


@dataclass(frozen=True)
class TablePart:
    """A part of a table, and the first and last time in it."""

    first: int
    last: int
    part: FilePart


class StreamSource:
    """The rows of one stream in pieces, each in order of time.

    Pieces may be behind those before them: ``lateness`` says how far, in ticks of the query.
    """

    def __init__(self, query: Query, number: int, given: Any) -> None:
        self.query, self.number, self.name = query, number, query.names[number]
        self.scan: Scan | None = scan_of(given, self.name)
        self._table: pa.Table | None = None
        if self.scan is None:
            self._table = as_table(given, self.name)
        self.schema = self.scan.schema if self.scan is not None else self._rows.schema
        self.rows = self._rows.num_rows if self.scan is None else self.scan.rows
        self._columns = self.schema.names
        self._stretches: list[TablePart] | None = None
        self._folder: SpillFolder | None = None
        self.lateness = 0
        self.pruned = 0  # rows that statistics say are in no result

    @property
    def _rows(self) -> pa.Table:
        assert self._table is not None, "rows come from a scan"
        return self._table

    def need(self, columns: Collection[str]) -> None:
        """Only these columns are read."""
        self._columns = [name for name in self.schema.names if name in columns]
        self.schema = pa.schema([self.schema.field(name) for name in self._columns])
        if self._table is not None:
            self._table = self._table.select(self._columns)

    def plan(self, bound: BoundQuery) -> None:
        """Look at what statistics say of the parts; only times are read where they say nothing."""
        self._time = bound.time_column(self.number)
        parts = None if self.scan is None else self.scan.parts()
        if parts is None:
            return
        kept = [part for part in parts if where_may_hold(bound, self.number, part)]
        self._stretches = [one for part in kept for one in self._stretch(part)]
        self.pruned = sum(part.rows for part in parts) - sum(one.part.rows for one in self._known)

    @property
    def _known(self) -> list[TablePart]:
        return self._stretches or []

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last time of all rows; None: nobody knows."""
        if self._table is not None:
            ticks = self._ticks(self._table)
            ticks = ticks[ticks < INT64_MAX]
            return (int(ticks.min()), int(ticks.max())) if len(ticks) else (INT64_MAX, -INT64_MAX)
        if self._stretches is None:
            return None
        if not self._stretches:
            return (INT64_MAX, -INT64_MAX)
        return min(one.first for one in self._known), max(one.last for one in self._known)

    def keep_within(self, first: int, last: int) -> None:
        """Read no parts that are before or after these times."""
        if self._stretches is not None:
            kept = [one for one in self._known if one.last >= first and one.first <= last]
            self.pruned += sum(one.part.rows for one in self._known if one not in kept)
            self._stretches = kept

    def settle(self, memory: Memory | None) -> None:
        """Decide in which order parts are read, and sort rows that are too far out of order."""
        limit = None if memory is None else memory.limit // SORTED_SHARE
        if self._stretches is None:
            if self.scan is not None and memory is not None and not self._in_order():
                self._sort_outside(memory)
            return
        self._stretches.sort(key=lambda one: one.first)
        self.lateness, most = _disorder(self._stretches)
        if limit is not None and self.lateness and most * self._row_bytes() > limit:
            assert memory is not None
            self._sort_outside(memory)

    def _row_bytes(self) -> int:
        some = min(self._known, key=lambda one: one.part.rows).part
        return max(some.read(self._columns).nbytes // max(some.rows, 1), 1)

    def pieces(self) -> Generator[pa.Table, None, None]:
        """The rows, some at a time."""
        if self._table is not None:
            yield from self._ordered(self._table)
            return
        if self._stretches is not None:
            stretches = self._stretches
            tables: Iterator[pa.Table] = (one.part.read(self._columns) for one in stretches)
            with closing(_ahead(tables)) as read:
                for table in read:
                    yield from self._ordered(table)
            return
        assert self.scan is not None
        newest, rows = -INT64_MAX, 0
        for table in self.scan.batches(self._columns):
            ticks = self._ticks(table)
            timed = ticks[ticks < INT64_MAX]
            if len(timed) and int(timed.min()) < newest:
                self._refuse(rows + int(np.flatnonzero(ticks < newest)[0]))
            newest = max(newest, int(timed.max()) if len(timed) else newest)
            rows += len(table)
            yield from self._ordered(table)

    def _refuse(self, row: int) -> None:
        raise InputError(
            f"stream {self.name!r}: row {row} is before rows that were read before it; give memory="
            " (and spill=), within which rows are sorted, or put them in order of"
            f" {self._time.column!r}"
        )

    def _ordered(self, table: pa.Table) -> Iterator[pa.Table]:
        times = self._ticks(table)
        taken: Any = pa.array(sorting(times)[0])
        whole = table if bool((np.diff(times) >= 0).all()) else table.take(taken)
        for at in range(0, whole.num_rows, ROWS_AT_ONCE):
            yield whole.slice(at, ROWS_AT_ONCE)

    def _ticks(self, table: pa.Table) -> I64:
        """Times of rows; of those without the last time, so that they come behind."""
        times, timed = self._time.read(table.column(self._time.column))
        ticks = self._time.ticks(times, np.zeros(len(times), np.bool_), 0)
        return ticks if timed is None else np.where(timed, ticks, INT64_MAX)

    def _stretch(self, part: FilePart) -> Iterator[TablePart]:
        """A part with its first and last time; nothing if it has no row with a time."""
        column = self._time.column
        ends = part.ends([column]).get(column)
        if ends is not None:
            of_ends = pa.table({column: pa.concat_arrays(list(ends))})
            first, last = self._ticks(of_ends).tolist()
            yield TablePart(first, last, part)
            return
        ticks = self._ticks(part.read([column]))
        ticks = ticks[ticks < INT64_MAX]
        if len(ticks):
            yield TablePart(int(ticks.min()), int(ticks.max()), part)

    # -- sorting ---------------------------------------------------------------------------------

    def _in_order(self) -> bool:
        assert self.scan is not None
        newest = -INT64_MAX
        for table in self.scan.batches([self._time.column]):
            ticks = self._ticks(table)
            ticks = ticks[ticks < INT64_MAX]
            if len(ticks) and int(ticks.min()) < newest:
                return False
            newest = max(newest, int(ticks.max()) if len(ticks) else newest)
        return True

    def _sort_outside(self, memory: Memory) -> None:
        """Sorted runs in files, whose row groups are then read in order of time."""
        from pyarrow import dataset, parquet

        folder = self._folder = SpillFolder(None, within=memory.spill)
        names: list[str] = []
        run: list[pa.Table] = []
        limit = memory.limit // SORTED_SHARE

        def write() -> None:
            table = pa.concat_tables(run)
            order: Any = pa.array(sorting(self._ticks(table))[0])
            whole = table.take(order)
            names.append(str(folder.file()))
            parquet.write_table(whole, names[-1], compression="lz4", row_group_size=ROWS_AT_ONCE)
            run.clear()

        for table in self._all():
            run.append(table)
            rows = sum(map(len, run))
            if rows >= LEAST_RUN and sum(one.nbytes for one in run) >= limit:
                write()
        if run:
            write()
        scan = scan_of(dataset.dataset(names, schema=self.schema, format="parquet"), self.name)
        assert scan is not None
        self.scan, self.rows = scan, scan.rows
        self._stretches = [one for part in scan.parts() or [] for one in self._stretch(part)]
        self._stretches.sort(key=lambda one: one.first)
        self.lateness, _ = _disorder(self._stretches)

    def _all(self) -> Iterator[pa.Table]:
        assert self.scan is not None
        if self._stretches is None:
            yield from self.scan.batches(self._columns)
            return
        for one in self._stretches:
            yield one.part.read(self._columns)

    def close(self) -> None:
        """Remove files of its own."""
        if self._folder is not None:
            self._folder.close()


def _disorder(stretches: Sequence[TablePart]) -> tuple[int, int]:
    """How far parts are behind those before them, and how many rows they overlap with at most."""
    newest, most, rows = -INT64_MAX, 0, 0
    open_parts: list[TablePart] = []
    for one in stretches:
        most = max(most, newest - one.first if newest > one.first else 0)
        newest = max(newest, one.last)
        open_parts = [other for other in open_parts if other.last >= one.first]
        open_parts.append(one)
        rows = max(rows, sum(other.part.rows for other in open_parts))
    return most, rows


def _ahead(tables: Iterator[pa.Table]) -> Generator[pa.Table, None, None]:
    """The same tables; the next is read while one is looked at."""
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(next, tables, None)
        while (table := waiting.result()) is not None:
            waiting = reader.submit(next, tables, None)
            yield table
