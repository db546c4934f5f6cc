"""Whole tables joined in stretches of time, read as they are needed: for more rows than memory."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.datasets import FilePart, Scan, scan_of
from windjoin.durations import Duration
from windjoin.errors import InputError, QueryError
from windjoin.inputs import as_table
from windjoin.kernels.spec import I64
from windjoin.kinds import INT64_MAX
from windjoin.memory import Memory, asked_memory
from windjoin.progress import ProgressOption, progress_bar
from windjoin.pruning import needed_columns, reachable, where_may_hold
from windjoin.pyx.base.pieces import sorting
from windjoin.query import Query
from windjoin.result_files import write_batches
from windjoin.runs import StretchesRun
from windjoin.state.spill_folder import SpillFolder

if TYPE_CHECKING:
    from windjoin.session import Session

ROWS_AT_ONCE = 1 << 16
SORTED_SHARE = 4  # a run that is sorted in memory is that part of the limit
LEAST_RUN = 1 << 16  # rows


@dataclass(frozen=True)
class TablePart:
    """A part of a table, and the first and last time in it."""

    first: int
    last: int
    part: FilePart


class Source:
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


def streamed(
    query: Query,
    tables: Mapping[str, Any],
    memory: Any = None,
    spill: Any = None,
    on_full: Any = "spill",
    progress: ProgressOption = False,
) -> Iterator[pa.RecordBatch]:
    """What `Query.stream` gives; wrong tables and options are refused at once."""
    return Streamed(query, tables, Bounds(memory, spill, on_full)).batches(progress)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What was asked of memory."""

    memory: Any = None
    spill: Any = None
    on_full: Any = "spill"


UNBOUNDED = Bounds()


class Streamed:
    """One join of tables that are read as they are needed."""

    def __init__(self, query: Query, tables: Mapping[str, Any], bounds: Bounds = UNBOUNDED) -> None:
        asked = asked_memory(bounds.memory, bounds.spill, bounds.on_full)
        if not isinstance(tables, Mapping) or set(tables) != set(query.names):
            raise QueryError(f"give a dictionary with a table for each of {', '.join(query.names)}")
        self.query, self._bounds = query, bounds
        self.sources = [Source(query, n, tables[name]) for n, name in enumerate(query.names)]
        bound = query.bind({source.name: source.schema for source in self.sources})
        for source, columns in zip(self.sources, needed_columns(bound), strict=True):
            source.need(columns)
        self.schemas = {source.name: source.schema for source in self.sources}
        self.bound = bound = query.bind(self.schemas)
        for source in self.sources:
            source.plan(bound)
        spans = [source.span for source in self.sources]
        for source in self.sources:
            ends = reachable(bound, spans, source.number)
            if ends is not None:
                source.keep_within(*ends)
        for source in self.sources:
            source.settle(asked)

    @property
    def schema(self) -> pa.Schema:
        """Of the results."""
        return self.bound.schema

    def _lateness(self) -> Any:
        ticks = max(source.lateness for source in self.sources)
        step = self.bound.clock.step
        if step is None or self.bound.integer_times:
            return ticks
        return Duration(int(ticks * step * 10**9) + 1 if ticks else 0)

    def batches(self, progress: ProgressOption = False) -> Iterator[pa.RecordBatch]:
        """Record batches of results as they are found."""
        bounds = self._bounds
        query, sources = self.query, self.sources
        left = {source.name: source.pieces() for source in sources}
        known = [source.rows for source in sources]
        total, done = sum(rows or 0 for rows in known), sum(source.pruned for source in sources)
        with ExitStack() as stack:
            for source in sources:
                stack.callback(source.close)
            for pieces in left.values():
                stack.callback(pieces.close)
            report = stack.enter_context(progress_bar(progress, "joining", "rows"))
            s = stack.enter_context(
                query.open(
                    self.schemas, lateness=self._lateness(), on_late="raise",
                    memory=bounds.memory, spill=bounds.spill, on_full=bounds.on_full,
                )
            )  # fmt: skip
            while left:
                name = s.slowest(left)
                piece = next(left[name], None)
                if piece is None:
                    s.finish(name)
                    del left[name]
                    continue
                yield from _plain(s.push(name, piece))
                done += piece.num_rows
                if report is not None:
                    report(done, max(total, done))
            for results in s.clean_up():
                yield from _plain(results)
            explained = s.explain("json")
            yield from _plain(s.close())
            self._tell(s, explained)

    def _tell(self, session: Session, explained: dict[str, object]) -> None:
        """Leave what was counted to the query."""
        told = session.metrics
        streams = {
            source.name: {
                "rows_in": one["rows_in"],
                "joinable": one["rows_in"] - one["rejected"] - one["unmatchable"],
                "rejected": one["rejected"],
            }
            for source in self.sources
            for one in (told["streams"][source.name],)
        }
        counters = {
            **{name: told[name] for name in ("rows_in", "results", "rejected", "comparisons")},
            "threads": 1,
            "unread": sum(source.pruned for source in self.sources),
            "streams": streams,
        }
        self.query.runs.show(StretchesRun(counters, explained))


def _plain(results: Any) -> Iterator[pa.RecordBatch]:
    yield from (b for b in results.replace_schema_metadata(None).to_batches() if b.num_rows)


def refuse_others(**options: Any) -> None:
    """Options that a join in stretches of time does not take."""
    for name, value in options.items():
        if value is not None:
            raise QueryError(
                f"{name}={value!r} is not for memory= and output=, which join in stretches of time"
            )


def run_streamed(
    query: Query,
    tables: Mapping[str, Any],
    bounds: Bounds,
    output: Any,
    progress: ProgressOption,
) -> Any:
    """What `Query.run` gives with ``memory=`` or ``output=``."""
    made = Streamed(query, tables, bounds)
    batches = made.batches(progress)
    if output is None:
        return pa.Table.from_batches(list(batches), made.schema)
    write_batches(batches, made.schema, output)
    return output if output == "-" else Path(output)
