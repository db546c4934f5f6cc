"""Rows stored once, in one slot each; partial results travel from slot to slot, one hop a stage.

A result is found from the first of its members that is new, in the order of the streams.  So there
is a *term* for each stream: its new rows travel to what the next stream of the term's order stored,
what that makes travels on.  Members of streams before that one are of earlier epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
from windjoin.arrow.blocks import Block, BlockCounts
from windjoin.arrow.packing import less, more
from windjoin.arrow.plan import Plan
from windjoin.arrow.probing import Onward, ResultBatches, stage_inputs
from windjoin.arrow.routes import Copies
from windjoin.epochs.routing import Routes, Span
from windjoin.epochs.window import SlotWindow, table_of
from windjoin.kernels.batch import Run
from windjoin.kernels.sorting import in_time_order
from windjoin.kernels.spec import I64, JoinSpec

TRAVELLING = -100  # minus the stream, in place of a stream number: new rows that look for partners
PARTIALS = -200  # minus the first stream: partial results of a term
FIRST, GROWTH = 1 << 14, 8  # partial results that are extended at once


@dataclass(frozen=True, slots=True)
class Meeting:
    """To which slots a partial result travels: all that have rows it can meet."""

    routes: Routes

    def meeting(self, low: I64, high: I64) -> Copies:
        """For results that meet rows with times from ``low`` to ``high``."""
        length = self.routes.units.length
        assert length is not None
        span = Span(low // length, high // length)
        return self.routes.owners.copies(span, np.arange(len(low)))


def order_from(spec: JoinSpec, first: int) -> tuple[int, ...]:
    """The streams from one on, along the conditions."""
    order, left = [first], [s for s in range(len(spec.streams)) if s != first]
    while left:
        linked = [
            s
            for s in left
            if any(s in p.streams_read and p.streams_read <= {*order, s} for p in spec.predicates)
        ]
        following = (linked or left)[0]
        order.append(following)
        left.remove(following)
    return tuple(order)


def term(plan: Plan, stream: int) -> Plan:
    """The plan of the results whose first new member is of a stream."""
    return replace(plan, order=order_from(plan.bound.spec, stream))


def departures(plan: Plan, routes: Routes, stream: int, times: I64, chosen: I64) -> Copies:
    """Where new rows of a stream look for their first partners."""
    own, target = plan.bound.spec.streams[stream], term(plan, stream).order[1]
    before = plan.bound.spec.streams[target].window
    sent = Meeting(routes).meeting(less(times, before), more(times, own.window))
    return Copies(chosen[sent.rows], sent.hosts)


class Hops:
    """One stage of all terms in one slot."""

    def __init__(self, plan: Plan, routes: Routes, stage: int, slot: int) -> None:
        self.plan, self.routes, self.stage, self.slot = plan, routes, stage, slot
        self.streams = len(plan.query.names)
        self.last = stage == self.streams - 2
        self.terms = [term(plan, stream) for stream in range(self.streams)]
        self.arrived: list[list[pa.RecordBatch]] = [[] for _ in self.terms]

    @property
    def schemas(self) -> dict[int, pa.Schema]:
        """What arrives, by stream number of its segments."""
        code = PARTIALS if self.stage else TRAVELLING
        return {code - number: self._arriving(one) for number, one in enumerate(self.terms)}

    def _arriving(self, one: Plan) -> pa.Schema:
        if not self.stage:
            return one.schema(one.order[0])
        return stage_inputs(one, self.stage)[2][0]

    def take(self, stream: int, rows: pa.RecordBatch) -> None:
        """A segment of partial results, or of new rows."""
        number = (PARTIALS if self.stage else TRAVELLING) - stream
        schema = stage_inputs(self.terms[number], self.stage)[2][0]
        self.arrived[number].append(pa.RecordBatch.from_arrays(rows.columns, schema=schema))

    def results(
        self, window: SlotWindow, new: Sequence[pa.Table], counts: BlockCounts, most: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Results if this is the last stage, else segments for the next.

        ``most``: bytes of stored rows that are taken up at a time; all if not given.
        """
        old = window.tables() if most is None else []
        for number, one in enumerate(self.terms):
            if not self.arrived[number]:
                continue
            target = one.order[self.stage + 1]
            own = [] if target < number else [new[target]]
            if most is None:
                stored: Iterable[pa.Table] = [pa.concat_tables([old[target], *own])]
            else:
                stored = chain((part() for part in window.parts(target, most)), own)
            yield from self._extended(number, one, stored, counts)

    def _extended(
        self, number: int, one: Plan, stored: Iterable[pa.Table], counts: BlockCounts
    ) -> Iterator[pa.RecordBatch]:
        joined, _, (partial, added) = stage_inputs(one, self.stage)
        arrived = table_of(self.arrived[number], partial)
        ordered = in_time_order(joined.prepare(0, arrived).rows)
        output: ResultBatches | Onward = ResultBatches(one, joined)
        if not self.last:
            where = self.slot * self.streams + number
            output = Onward(one, joined, self.stage, where, Meeting(self.routes), PARTIALS - number)
        for rows in stored:
            if rows.num_rows:
                table = rows.rename_columns(added.names)
                other = in_time_order(joined.prepare(1, table).rows)
                block = Block(joined, [arrived, table], [ordered, other], 0)
                yield from self._met(block, one, output, counts)
        yield from output.finish()

    def _met(
        self, block: Block, one: Plan, output: ResultBatches | Onward, counts: BlockCounts
    ) -> Iterator[pa.RecordBatch]:
        """What the partial results of a block meet."""
        first, slice_, total = 0, FIRST, len(block.ordered[0].time)
        before: Run | None = None
        while first < total:
            end = min(total, first + slice_)
            found, run = block.join(first, end, counts, before)
            before = run if run is not None and run.as_expected else None
            results = len(found.rows[0])
            counts.results += results if self.last else 0
            wanted = (end - first) * one.limits.results // max(1, results)
            slice_ = max(1, min(wanted, GROWTH * slice_))
            first = end
            if results:
                yield from output.batches(found)
