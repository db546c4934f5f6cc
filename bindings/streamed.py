"""Whole tables joined in stretches of time, read as they are needed: for more rows than memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.durations import Duration
from windjoin.errors import InputError, QueryError
from windjoin.inputs import as_table
from windjoin.kernels.spec import I64
from windjoin.layout import gatherable
from windjoin.memory import asked_memory
from windjoin.own_times import OwnTimes
from windjoin.progress import ProgressOption, progress_bar
from windjoin.pyx.base.pieces import sorting
from windjoin.query import Query

ROWS_AT_ONCE = 1 << 16
PARQUET = (".parquet", ".pq")
Piece = tuple[pa.Table, I64]  # rows and their times


class Source:
    """The rows of one stream in pieces, each in order of time, from a table or Parquet files.

    Pieces may be behind those before them: ``lateness`` says how far, in ticks of the stream.
    """

    def __init__(self, query: Query, number: int, given: Any) -> None:
        self.name = query.names[number]
        self._files: list[tuple[Any, int]] | None = None  # row groups of files
        if isinstance(given, (str, Path)) and _is_parquet(Path(given)):
            self._files = _row_groups(Path(given), self.name)
            self.schema = gatherable(self._files[0][0].schema_arrow.empty_table()).schema
            self.rows = sum(f.metadata.row_group(g).num_rows for f, g in self._files)
        else:
            self._table = as_table(given, self.name)
            self.schema, self.rows = self._table.schema, self._table.num_rows
        self._times = OwnTimes(query, number, self.schema, 0)
        self.lateness = self._disorder()

    @property
    def longest(self) -> int | Duration:
        """``lateness`` as `Query.open` takes it."""
        step = self._times.clock.step
        if step is None or pa.types.is_integer(self._times.column.type):
            return self.lateness
        return Duration(int(self.lateness * step * 10**9) + 1)

    def pieces(self) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        for table in self._tables():
            times = self._ticks(table)
            taken: Any = pa.array(sorting(times)[0])
            whole = table if bool((np.diff(times) >= 0).all()) else table.take(taken)
            for at in range(0, whole.num_rows, ROWS_AT_ONCE):
                yield whole.slice(at, ROWS_AT_ONCE)

    def _tables(self) -> Iterator[pa.Table]:
        if self._files is None:
            yield self._table
            return
        for file, group in self._files:
            yield gatherable(file.read_row_group(group))

    def _ticks(self, table: pa.Table) -> I64:
        """Times of rows; of those without the last time, so that they come behind."""
        ticks, _ = self._times.split_late(table)
        return ticks

    def _disorder(self) -> int:
        """How far a row group of a file is behind one before it; only times are read for that."""
        if self._files is None:
            return 0
        newest, most = None, 0
        column = self._times.column.column
        for file, group in self._files:
            table = file.read_row_group(group, columns=[column])
            timed = table.filter(table.column(column).is_valid())
            if not timed.num_rows:
                continue
            ticks = self._ticks(gatherable(timed))
            first, last = int(ticks.min()), int(ticks.max())
            most = max(most, 0 if newest is None else newest - first)
            newest = last if newest is None else max(newest, last)
        return most


def _is_parquet(path: Path) -> bool:
    return path.exists() and (path.is_dir() or path.suffix.lower() in PARQUET)


def _row_groups(path: Path, stream: str) -> list[tuple[Any, int]]:
    from pyarrow import parquet

    names = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not names:
        raise InputError(f"stream {stream!r}: there is no Parquet file in {str(path)!r}")
    try:
        files = [parquet.ParquetFile(name) for name in names]
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"stream {stream!r}: {str(path)!r} cannot be read as a table: {reason}"
        ) from error
    return [(file, group) for file in files for group in range(file.metadata.num_row_groups)] or [
        (files[0], 0)
    ]


def streamed(
    query: Query,
    tables: Mapping[str, Any],
    memory: Any = None,
    spill: Any = None,
    progress: ProgressOption = False,
) -> Iterator[pa.RecordBatch]:
    """What `Query.stream` gives; wrong tables and options are refused at once."""
    asked_memory(memory, spill, "spill")
    if not isinstance(tables, Mapping) or set(tables) != set(query.names):
        raise QueryError(f"give a dictionary with a table for each of {', '.join(query.names)}")
    sources = [Source(query, n, tables[name]) for n, name in enumerate(query.names)]
    schemas = {source.name: source.schema for source in sources}
    query.bind(schemas)
    return _batches(query, sources, schemas, (memory, spill), progress)


def _batches(
    query: Query,
    sources: list[Source],
    schemas: dict[str, pa.Schema],
    bound: tuple[Any, Any],
    progress: ProgressOption,
) -> Iterator[pa.RecordBatch]:
    memory, spill = bound
    lateness = max((source.longest for source in sources if source.lateness), default=0)
    left = {source.name: source.pieces() for source in sources}
    total, done = sum(source.rows for source in sources), 0
    with (
        progress_bar(progress, "joining", "rows") as report,
        query.open(schemas, lateness=lateness, on_late="raise", memory=memory, spill=spill) as s,
    ):
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
                report(done, total)
        for results in s.clean_up():
            yield from _plain(results)
        yield from _plain(s.close())


def _plain(results: Any) -> Iterator[pa.RecordBatch]:
    yield from (b for b in results.replace_schema_metadata(None).to_batches() if b.num_rows)


def write_streamed(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: Path) -> int:
    """Results to a Parquet file as they come; how many."""
    from pyarrow import parquet

    if path.suffix.lower() not in PARQUET:
        raise InputError(
            f"output {str(path)!r}: results are written as they come to Parquet; give a name that"
            " ends in .parquet"
        )
    draft, rows = path.with_name(f".{path.name}.part"), 0
    try:
        with parquet.ParquetWriter(draft, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        draft.replace(path)
    except OSError as error:
        raise InputError(f"output {str(path)!r} cannot be written: {error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return rows


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
    memory: Any,
    spill: Any,
    output: Any,
    progress: ProgressOption,
) -> Any:
    """What `Query.run` gives with ``memory=`` or ``output=``."""
    batches = streamed(query, tables, memory, spill, progress)
    schemas = {n: Source(query, k, tables[n]).schema for k, n in enumerate(query.names)}
    schema = query.bind(schemas).schema
    if output is None:
        return pa.Table.from_batches(list(batches), schema)
    write_streamed(batches, schema, Path(output))
    return Path(output)
