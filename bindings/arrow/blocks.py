"""Rows that arrive in time order, joined block by block, in bounded memory.

One input is the master.  Its rows of a block are joined as soon as everything that may meet them is
here; then rows that no later master row can meet are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.arrow.local_join import JoinContext
from windjoin.arrow.plan import ROW, Limits
from windjoin.arrow.raising import Results
from windjoin.arrow.segments import arrow_array
from windjoin.errors import FunctionError
from windjoin.kernel_errors import AS_OWN_ERRORS
from windjoin.kernels.batch import JoinRun, join_rows
from windjoin.kernels.sorting import Sorted, in_time_order
from windjoin.kernels.spec import I64, Bools, Rows
from windjoin.output import Fetch, table_fetch

FIRST_SLICE = 2048  # master rows; what they yield tells how many to take next
GROWTH = 8
NEVER = 2**64  # later than any time


@dataclass
class BlockCounts:
    """What a host did."""

    rows: list[int]
    results: int = 0
    comparisons: int = 0
    blocks: int = 0
    most_bytes: int = 0  # held at a time


@dataclass(slots=True)
class Found:
    """Some results: row numbers by input, scores, and what serves the inputs' columns.

    ``errors`` tells for which of them a function raised.
    """

    rows: list[I64]
    scores: list[Any]
    fetch: Fetch
    errors: Callable[[], Iterator[tuple[int, FunctionError]]]


@dataclass
class _Input:
    """Rows of one input that may still be needed."""

    schema: pa.Schema
    pieces: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.pieces.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.pieces, self.schema).combine_chunks()

    def keep(self, table: pa.Table) -> None:
        self.pieces, self.rows, self.bytes = table.to_batches(), table.num_rows, table.nbytes


class BlockJoin:
    """The join of inputs that arrive in time order, on one host."""

    def __init__(
        self, joined: JoinContext, schemas: Sequence[pa.Schema], master: int, limits: Limits
    ) -> None:
        self.joined, self.master, self.limits = joined, master, limits
        self.inputs = [_Input(schema) for schema in schemas]
        self.counts = BlockCounts([0] * len(schemas))
        self._kept_rows = self._kept_bytes = 0  # by the last block
        self._done = -NEVER  # master rows before this have been joined
        self._slice = FIRST_SLICE
        self._before: JoinRun | None = None  # whose plan serves for the next rows

    def add(self, number: int, start: int, rows: pa.RecordBatch) -> Iterator[Found]:
        """Take rows of an input; nothing before ``start`` is still to come of any input."""
        if self._worth_a_block():
            yield from self._block(start - self.joined.windows[self.master])
        self.inputs[number].add(rows)
        self.counts.rows[number] += rows.num_rows

    def finish(self) -> Iterator[Found]:
        """Join what is left."""
        yield from self._block(NEVER)

    def _worth_a_block(self) -> bool:
        rows = sum(one.rows for one in self.inputs) - self._kept_rows
        size = sum(one.bytes for one in self.inputs) - self._kept_bytes
        return rows >= max(self.limits.block_rows, self._kept_rows) or size >= max(
            self.limits.block_bytes, self._kept_bytes
        )

    def _block(self, ready: int) -> Iterator[Found]:
        """Join master rows before ``ready``; everything they may meet is here."""
        held = sum(one.bytes for one in self.inputs)
        self.counts.most_bytes = max(self.counts.most_bytes, held)
        if ready > self._done and all(one.rows for one in self.inputs):
            self.counts.blocks += 1
            yield from self._join(ready)
        elif ready > self._done:
            self._done = ready
        self._kept_rows = sum(one.rows for one in self.inputs)
        self._kept_bytes = sum(one.bytes for one in self.inputs)

    def _join(self, ready: int) -> Iterator[Found]:
        tables = [one.table() for one in self.inputs]
        ordered = [
            in_time_order(self.joined.prepare(number, table).rows)
            for number, table in enumerate(tables)
        ]
        times = ordered[self.master].time
        first, last = _before(times, self._done), _before(times, ready)
        block = Block(self.joined, tables, ordered, self.master)
        while first < last:
            end = min(last, first + self._slice)
            found, run = block.join(first, end, self.counts, self._before)
            if run is not None:
                self._before = run if run.as_expected else None
            results = len(found.rows[0])
            self.counts.results += results
            self._resize(end - first, results)
            first = end
            if results:
                yield found
        self._done = ready
        if ready < NEVER:
            self._expire(tables, ordered, ready)

    def _resize(self, taken: int, results: int) -> None:
        """As many master rows next as make about ``limits.results`` results."""
        if results > self.limits.results or taken == self._slice:
            wanted = taken * self.limits.results // max(1, results)
            self._slice = max(1, min(wanted, GROWTH * self._slice))

    def _expire(self, tables: list[pa.Table], ordered: list[Sorted], ready: int) -> None:
        for number, (table, rows) in enumerate(zip(tables, ordered, strict=True)):
            needed = ready - (0 if number == self.master else self.joined.windows[number])
            first = _before(rows.time, needed)
            if rows.origin is None:
                self.inputs[number].keep(table.slice(first))
            else:
                self.inputs[number].keep(table.take(arrow_array(rows.origin[first:], pa.int64())))


class Block:
    """Tables whose usable rows have been put in time order."""

    def __init__(
        self, joined: JoinContext, tables: list[pa.Table], ordered: list[Sorted], master: int,
        only: Callable[[list[I64]], Bools] | None = None,
    ) -> None:  # fmt: skip
        """``only``: which combinations are wanted, by their row numbers; all if not given."""
        self.joined, self.ordered, self.master, self.only = joined, ordered, master, only
        self.fetch = table_fetch(tables)
        self.members = joined.members_fetch(self.fetch)

    def join(
        self, first: int, last: int, counts: BlockCounts, before: JoinRun | None
    ) -> tuple[Found, JoinRun | None]:
        """The results of master rows ``[first, last)``: row numbers in the tables.

        ``before``: a run over earlier rows; with the results comes this one, if there was any
        """
        times = self.ordered[self.master].time
        low, high = int(times[first]), int(times[last - 1]) + self.joined.windows[self.master]
        starts, slices = [], []
        for number, rows in enumerate(self.ordered):
            begin, end = first, last
            if number != self.master:
                begin = _before(rows.time, low - self.joined.windows[number])
                end = _before(rows.time, high + 1)
            starts.append(begin)
            columns = [column[begin:end] for column in rows.columns]
            varlen = rows.part_varlen(begin, end)
            slices.append(Rows(rows.time[begin:end], columns, rows.part(begin, end), varlen))
        if not all(len(one) for one in slices):
            nothing = [np.empty(0, np.int64) for _ in slices]
            return Found(nothing, [], self.fetch, lambda: iter(())), None
        spec = self.joined.spec_with(self._sliced(starts))
        with AS_OWN_ERRORS:
            found, run, scores = join_rows(spec, slices, before=before, partial=True)
        counts.comparisons += run.comparisons
        numbers = [self._rows(n, starts[n], own) for n, own in enumerate(found)]
        kept = self._wanted(numbers)
        if kept is not None:
            found, numbers = ([rows[kept] for rows in both] for both in (found, numbers))
        results = Results(self.joined, spec, slices, found, numbers, self.fetch)
        errors = partial(results.errors, run.raised)
        return Found(numbers, scores.of(found), self.fetch, errors), run

    def _rows(self, number: int, start: int, rows: I64) -> I64:
        origin = self.ordered[number].origin
        return rows + start if origin is None else origin[rows + start]

    def _sliced(self, starts: list[int]) -> Fetch:
        return lambda number, names, rows: self.fetch(
            number, names, self._rows(number, starts[number], rows)
        )

    def _wanted(self, rows: list[I64]) -> I64 | None:
        """The combinations in which no row of one table pairs with itself; None: all of them."""
        by_stream = self.joined.members_rows(rows)
        apart: Bools | None = None if self.only is None else self.only(rows)
        for left, right in self.joined.distinct():
            one, other = (
                self.members(stream, [ROW], by_stream[stream])[0].to_numpy()
                for stream in (left, right)
            )
            apart = one != other if apart is None else apart & (one != other)
        return None if apart is None else np.flatnonzero(apart)


def _before(times: I64, bound: int) -> int:
    """How many of the ascending ``times`` are before ``bound``."""
    if bound > 2**63 - 1:
        return len(times)
    return 0 if bound < -(2**63) else int(np.searchsorted(times, np.int64(bound), "left"))
