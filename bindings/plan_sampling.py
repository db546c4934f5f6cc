"""Selectivities from samples: what conditions let pass of the combinations inside the windows.

Stretches of time of the tables are joined, ever longer ones, until enough was found or the time for
it is up.  So streams whose values go together, or come and go together, are seen as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import thread_time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.errors import FunctionError
from windjoin.expressions import Expression
from windjoin.kernels.spec import I64, Predicate, Rows
from windjoin.kernels.statistics import Statistics
from windjoin.query import Query
from windjoin.query_making import join

if TYPE_CHECKING:
    from windjoin.streams import Stream

FIRST_ROWS = 16  # of a stretch, of all streams together; a function may take long for a pair
LONGER = 4
ENOUGH = 2000  # results
FEW = 20  # results that say too little
SECONDS = 0.05  # of CPU; a stretch but the first that took so long is the last one
MOST_RESULTS = 3e6  # that the next stretch could have


@dataclass(frozen=True)
class Sample:
    """Usable rows of a stream by time, and the table that they are from."""

    table: pa.Table
    time: I64  # sorted
    rows: I64  # where they are in the table
    window: int

    @classmethod
    def of(cls, table: pa.Table, rows: Rows, window: int) -> Sample:
        """Without the rows that filters drop."""
        usable = np.arange(len(rows)) if rows.usable is None else np.flatnonzero(rows.usable)
        order = usable[np.argsort(rows.time[usable], kind="stable")]
        return cls(table, rows.time[order], order, window)


def with_seen(
    bound: BoundQuery, tables: Sequence[pa.Table], rows: Sequence[Rows], found: Statistics
) -> Statistics:
    """Statistics and, of what samples tell better when joined, the shares that these had."""
    query, predicates = bound.query, bound.spec.predicates
    samples = [
        Sample.of(table, one, stream.window)
        for table, one, stream in zip(tables, rows, bound.spec.streams, strict=True)
    ]
    shares, compared = dict(found.selectivity), dict(found.compared)
    for predicate in predicates:
        condition = _condition_of(query, predicate, predicates)
        if condition is not None:
            numbers = sorted(predicate.streams_read)
            seen = _seen(query, (condition,), numbers, samples)
            if seen is not None:
                shares[predicate.place] = seen.passed
            if seen is not None and seen.compared is not None:
                compared[predicate.place] = seen.compared
    joint = dict(found.joint)
    if len(predicates) > 1:
        seen = _seen(query, query.on, range(len(samples)), samples)
        if seen is not None:
            joint = {frozenset(p.place for p in predicates): seen.passed, **joint}
    return replace(found, selectivity=shares, joint=joint, compared=compared)


def _condition_of(
    query: Query, predicate: Predicate, predicates: Sequence[Predicate]
) -> Expression | None:
    """The condition that a predicate of a costly kind, and no other, was made of."""
    if not predicate.sampled_as_asked:
        return None
    alike = [one for one in predicates if one.text == predicate.text]
    names = {query.names[stream] for stream in predicate.streams_read}
    if len(alike) > 1:
        return None
    return next(
        (one for one in query.on if repr(one) == predicate.text and set(one.streams) == names), None
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """What samples that were joined say, as shares of the combinations inside the windows."""

    passed: float
    compared: float | None  # that bounds left open; None: no index counted them


def _seen(
    query: Query, on: Sequence[Expression], numbers: Sequence[int], samples: Sequence[Sample]
) -> Seen | None:
    """Shares of what is inside the windows; None if too few were found to say."""
    used = [samples[number] for number in numbers]
    streams: list[Stream] = [query.streams[number] for number in numbers]
    asked = join(*streams, on=list(on), closed=query.closed, cross=True)
    if not all(len(one.time) for one in used):
        return None
    first = max(int(one.time[0]) for one in used)
    last = min(int(one.time[-1]) for one in used)
    begin = (first + last) // 2
    rows_per_tick = sum(len(one.time) for one in used) / max(last - first, 1)
    length = max(int(FIRST_ROWS / max(rows_per_tick, 1e-300)), 1)
    result: tuple[int, float] = 0, 0.0
    warm = False
    while True:
        parts = [_stretch(one, begin, begin + length) for one in used]
        combinations = _combinations(parts)
        started = thread_time()
        tables = {s.name: one.table.take(one.rows) for s, one in zip(streams, parts, strict=True)}
        try:
            found = len(next(iter(asked.indices(tables, threads=1).values())))
        except FunctionError:
            return None  # the function does not take any two rows: its share stays assumed
        result = found, combinations
        slow = warm and thread_time() - started > SECONDS
        many = found * LONGER ** len(used) > MOST_RESULTS
        if found >= ENOUGH or many or slow or begin + length > last:
            break
        warm = True  # functions are compiled now
        length *= LONGER
    return Seen(result[0] / result[1], _compared(asked, result[1])) if result[0] >= FEW else None


def _compared(asked: Query, combinations: float) -> float | None:
    """Of a query over two streams that has run: what its index had to read of all combinations."""
    last = asked.runs.last()
    hops = [] if last is None else last.run.hops
    if len(hops) != 1 or hops[0].get("compared", -1) < 0:
        return None
    return float(hops[0]["compared"]) / combinations


def _stretch(sample: Sample, begin: int, end: int) -> Sample:
    at = slice(*np.searchsorted(sample.time, [begin, end]).tolist())
    return replace(sample, time=sample.time[at], rows=sample.rows[at])


def _combinations(parts: Sequence[Sample]) -> float:
    """Combinations of a row of each that are inside the windows, by their latest row."""
    total = 0.0
    for number, one in enumerate(parts):
        met = np.ones(len(one.time))
        for other, part in enumerate(parts):
            if other != number:
                # of equal times the row of the first stream counts as the earlier one
                first = other < number
                until = np.searchsorted(part.time, one.time, "right" if first else "left")
                met *= until - np.searchsorted(part.time, one.time - part.window, "left")
        total += float(met.sum())
    return total
