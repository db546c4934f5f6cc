"""Whole tables joined in stretches of time, read as they are needed: for more rows than memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from windjoin.durations import Duration
from windjoin.errors import QueryError
from windjoin.memory import asked_memory
from windjoin.progress import ProgressOption, progress_bar
from windjoin.pruning import needed_columns, reachable
from windjoin.query import Query
from windjoin.result_files import write_batches
from windjoin.runs import StretchesRun
from windjoin.stream_sources import StreamSource

if TYPE_CHECKING:
    from windjoin.session import Session


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
        self.sources = [StreamSource(query, n, tables[name]) for n, name in enumerate(query.names)]
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
