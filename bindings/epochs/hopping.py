"""Rows stored once, in one slot each; partial results travel from slot to slot, one hop a stage.

A result is found from the first of its members that is new, in the order of the streams.  So there
is a *term* for each stream: its new rows travel to what the next stream of the term's order stored,
what that makes travels on.  Members of streams before that one are of earlier epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
from windjoin.arrow.blocks import Block, BlockCounts
from windjoin.arrow.packing import less, more
from windjoin.arrow.plan import Plan
from windjoin.arrow.probing import Onward, ResultBatches, stage_inputs
from windjoin.arrow.routes import Copies
from windjoin.epochs.asking import Meeting, Reading
from windjoin.epochs.placing import UnitSlots
from windjoin.epochs.routing import Routes
from windjoin.epochs.window import SlotWindow, table_of
from windjoin.kernels.batch import JoinRun
from windjoin.kernels.sorting import in_time_order
from windjoin.kernels.spec import I64, Bools, JoinSpec

PARTIALS = -100  # minus the term, in place of a stream number: partial results that travel
FIRST, GROWTH = 1 << 14, 8  # partial results that are extended at once
SAMPLED = 16  # each of so many rows is asked how many it could meet

Output = ResultBatches | Onward


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


def terms(plan: Plan, routes: Routes) -> list[Plan]:
    """The plans of the results whose first new member is of a stream, by their numbers."""
    placed = routes.placed
    orders = () if placed is None else placed.orders
    spec = plan.bound.spec
    orders = orders or tuple(order_from(spec, stream) for stream in range(len(spec.streams)))
    return [replace(plan, order=order) for order in orders]


def sent(plan: Plan, routes: Routes, stream: int, times: I64, chosen: I64) -> Copies:
    """Where new rows go: to the slot that writes them, and to all where they have partners.

    One copy is for both; slots tell by its time what it is for.
    """
    length, placed = routes.units.length, routes.placed
    assert length is not None
    units, places = times // length, np.arange(len(times))
    slots, rows = [routes.writers(stream, units)], [places]
    for target, own in _targets(plan, routes, stream, units):
        met = _first_met(plan, routes, stream, target, times[own])
        slots.append(met.hosts)
        rows.append(own[met.rows])
    known = routes.known(stream, units)
    for unit, others in ({} if placed is None else placed.more[stream]).items():
        own = np.flatnonzero(known == unit)
        slots.append(np.tile(np.array(others, np.int32), len(own)))
        rows.append(np.repeat(own, len(others)))
    pairs = np.unique(np.concatenate(rows) << 16 | np.concatenate(slots).astype(np.int64))
    return Copies(chosen[pairs >> 16], (pairs & 0xFFFF).astype(np.int32))


def _first_met(plan: Plan, routes: Routes, stream: int, target: int, times: I64) -> Copies:
    """Where new rows of a stream find their partners of another."""
    windows = [one.window for one in plan.bound.spec.streams]
    low, high = less(times, windows[target]), more(times, windows[stream])
    return Meeting(routes, stream, 0, target).meeting(low, high, times)


def _targets(plan: Plan, routes: Routes, stream: int, units: I64) -> Iterator[tuple[int, I64]]:
    """Which rows of a stream look for partners in which other one first."""
    every = terms(plan, routes)
    numbers = _numbers(routes, stream, units)
    targets = np.array([one.order[1] for one in every])[numbers]
    for target in np.unique(targets).tolist():
        yield target, np.flatnonzero(targets == target)


def _numbers(routes: Routes, stream: int, units: I64) -> I64:
    """The terms that rows of units begin."""
    if routes.placed is None:
        return np.full(len(units), stream)
    paths = routes.placed.paths_of(stream)
    orders = np.array([*(path.order for path in paths.known), stream], np.int64)
    return orders[paths.numbers(units)]


@dataclass(frozen=True, slots=True)
class Asking:
    """Partial results that ask for rows of a stream."""

    arrived: pa.Table
    ways: I64 | None  # which of the ways of the reading each asks; None: there is one
    reading: Reading


class Hops:
    """One stage of all terms in one slot."""

    def __init__(self, plan: Plan, routes: Routes, stage: int, slot: int) -> None:
        self.plan, self.routes, self.stage, self.slot = plan, routes, stage, slot
        self.last = stage == len(plan.query.names) - 2
        self.terms = terms(plan, routes)
        self.arrived: list[list[pa.RecordBatch]] = [[] for _ in self.terms]
        self.near: list[pa.Table] = []  # what came of each stream, in the first stage
        self.met: list[tuple[int, int, int, int]] = []  # streams, rows of the first, pairs

    @property
    def schemas(self) -> dict[int, pa.Schema]:
        """What arrives beside rows, by stream number of its segments."""
        if not self.stage:
            return {}
        every = enumerate(self.terms)
        return {PARTIALS - n: stage_inputs(one, self.stage)[2][0] for n, one in every}

    @property
    def taken(self) -> int:
        """Rows and partial results that came."""
        return sum(map(len, self.near)) + sum(len(rows) for own in self.arrived for rows in own)

    def take(self, number: int, rows: pa.RecordBatch) -> None:
        """A segment of partial results."""
        self.arrived[PARTIALS - number].append(rows)

    def take_rows(self, near: Sequence[pa.Table]) -> list[pa.Table]:
        """All rows that came of each stream; which of them this slot writes."""
        self.near = list(near)
        every = range(len(near))
        return [
            self._read(Reading(self.routes, stream, self.slot), near[stream]) for stream in every
        ]

    def results(
        self, window: SlotWindow, counts: BlockCounts, most: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Results if this is the last stage, else segments for the next.

        ``most``: bytes of stored rows that are taken up at a time; all if not given.
        """
        for number, one in enumerate(self.terms):
            arrived, ways, asked = self._arrivals(number, one)
            if not arrived.num_rows:
                continue
            target = one.order[self.stage + 1]
            reading = Reading(self.routes, target, self.slot, asked)
            fresh = [] if target < one.order[0] else [self._fresh(window, reading)]
            if most is None:
                stored: Iterable[pa.Table] = [pa.concat_tables([window.read(reading), *fresh])]
            else:
                parts = window.parts(target, most, reading)
                stored = chain((part() for part in parts), fresh)
            yield from self._extended(number, one, Asking(arrived, ways, reading), stored, counts)

    def _output(self, number: int, one: Plan) -> Output:
        joined = stage_inputs(one, self.stage)[0]
        if self.last:
            return ResultBatches(one, joined)
        where = self.slot * len(self.terms) + number
        route = Meeting(self.routes, one.order[0], self.stage + 1, one.order[self.stage + 2])
        return Onward(one, joined, self.stage, where, route, PARTIALS - number)

    def _fresh(self, window: SlotWindow, reading: Reading) -> pa.Table:
        """Rows of the epoch."""
        if self.stage:
            return window.new(reading)
        return self._read(reading, self.near[reading.stream])

    def _read(self, reading: Reading, rows: pa.Table) -> pa.Table:
        if not rows.num_rows:
            return rows
        own = reading.own(self._units(rows, reading.stream))
        return rows if own.all() else rows.filter(pa.array(own))

    def _units(self, rows: pa.Table, stream: int, prefix: str = "") -> I64:
        length = self.routes.units.length
        assert length is not None
        return self._times(rows, stream, prefix) // length

    def _times(self, rows: pa.Table, stream: int, prefix: str = "") -> I64:
        own = self.plan.bound.time_column(stream)
        values, valid = own.read(rows.column(prefix + own.column).combine_chunks())
        return own.ticks(values, valid, 0)

    def _arrivals(
        self, number: int, one: Plan
    ) -> tuple[pa.Table, I64 | None, tuple[UnitSlots | None, ...]]:
        """Partial results, which way each asks if there are several, and the ways."""
        schema, first = stage_inputs(one, self.stage)[2][0], one.order[0]
        if self.stage:
            arrived, prefix = table_of(self.arrived[number], schema), f"{first}."
        else:
            arrived, prefix = self.near[first], ""
        placed = self.routes.placed
        paths = None if placed is None else placed.paths_of(first)
        if not arrived.num_rows or paths is None or not paths.known:
            own = arrived if self.stage or number == first else arrived.slice(0, 0)
            return own.rename_columns(schema.names), None, (None,)
        units = self._units(arrived, first, prefix)
        if not self.stage:  # rows may be here for others to find
            here = self._asking(number, one, arrived, units)
            arrived, units = arrived.filter(pa.array(here)), units[here]
        found, places = np.unique(paths.numbers(units), return_inverse=True)
        ways: dict[UnitSlots | None, int] = {}
        codes = [
            ways.setdefault(paths.known[path].readers[self.stage] if path >= 0 else None, len(ways))
            for path in found.tolist()
        ]
        each = np.array(codes, np.int64)[places] if len(ways) > 1 else None
        return arrived.rename_columns(schema.names), each, tuple(ways)

    def _asking(self, number: int, one: Plan, rows: pa.Table, units: I64) -> Bools:
        """Which new rows begin a term here."""
        first, target = one.order[:2]
        mine: Bools = _numbers(self.routes, first, units) == number
        met = _first_met(self.plan, self.routes, first, target, self._times(rows, first))
        here = np.zeros(len(units), np.bool_)
        here[met.of(self.slot).rows] = True
        return mine & here

    def _extended(
        self, number: int, one: Plan, asking: Asking, stored: Iterable[pa.Table],
        counts: BlockCounts,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        joined, _, (_, added) = stage_inputs(one, self.stage)
        output = self._output(number, one)
        ordered = in_time_order(joined.prepare(0, asking.arrived).rows)
        for rows in stored:
            if rows.num_rows:
                only = None if asking.ways is None else self._unless_void(asking, rows)
                table = rows.rename_columns(added.names)
                other = in_time_order(joined.prepare(1, table).rows)
                block = Block(joined, [asking.arrived, table], [ordered, other], 0, only)
                yield from self._met(block, one, output, counts)
        yield from output.finish()

    def _unless_void(self, asking: Asking, rows: pa.Table) -> Callable[[list[I64]], Bools]:
        """Which pairs are joined here, and not by another slot that has the row as well."""
        units, places = np.unique(self._units(rows, asking.reading.stream), return_inverse=True)
        each, ways = asking.reading.each(units), asking.ways
        assert ways is not None
        return lambda pairs: each[ways[pairs[0]], places[pairs[1]]]

    def _met(
        self, block: Block, one: Plan, output: Output, counts: BlockCounts
    ) -> Iterator[pa.RecordBatch]:
        """What the partial results of a block meet."""
        first, slice_, total, pairs = 0, FIRST, len(block.ordered[0].time), 0
        before: JoinRun | None = None
        while first < total:
            end = min(total, first + slice_)
            found, run = block.join(first, end, counts, before)
            before = run if run is not None and run.as_expected else None
            results = len(found.rows[0])
            counts.results += results if self.last else 0
            pairs += results
            wanted = (end - first) * one.limits.results // max(1, results)
            slice_ = max(1, min(wanted, GROWTH * slice_))
            first = end
            if results:
                yield from output.batches(found)
        if not self.stage:
            self.met.append((one.order[0], one.order[1], _candidates(block, one), pairs))


def _candidates(block: Block, one: Plan) -> int:
    """About how many pairs are within their windows."""
    first, second = (one.bound.spec.streams[stream].window for stream in one.order[:2])
    times, others = block.ordered[0].time[::SAMPLED], block.ordered[1].time
    high = np.searchsorted(others, more(times, first), "right")
    return SAMPLED * int((high - np.searchsorted(others, less(times, second), "left")).sum())
