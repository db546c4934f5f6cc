"""What a plan has the engine do, counted in units of work; what a unit costs is in `unit_costs`.

The same counts are made of what a plan expects and of what a run measured, so the costs of units
that `windjoin doctor --calibrate` finds are those that plans are costed with.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from windjoin.binding import BoundQuery
from windjoin.kernels.access import Access
from windjoin.kernels.band import Band
from windjoin.kernels.boxes import BOX_ROWS, Boxes
from windjoin.kernels.equality import Equality
from windjoin.kernels.inequality import Inequality
from windjoin.kernels.items import Items
from windjoin.kernels.order import Order, OrderHop
from windjoin.kernels.parts import shared_key
from windjoin.kernels.similarity import Alike, varlen_sides
from windjoin.kernels.spec import Equal, JoinSpec, Rows
from windjoin.kernels.statistics import Statistics


class Work(dict[str, float]):
    """How often each unit is done; units that are missing are not done.

    >>> work = Work(row=1.0)
    >>> work["push"] += 0.5
    >>> work.add(Work(row=2.0), 3.0)
    >>> work
    {'row': 7.0, 'push': 0.5}
    """

    def __missing__(self, unit: str) -> float:
        return 0.0

    def add(self, other: Work, times: float = 1.0) -> None:
        """Add what another does, so many times."""
        for unit, count in other.items():
            self[unit] += count * times


# asked by many partial results of one row, pushed rows find these in near caches
CHEAPER_LATER = (Equality, Band, Inequality, Boxes)


@dataclass(frozen=True, slots=True)
class HopCounts:
    """What a hop looked at: as expected, or as measured."""

    asked: float  # partial results
    proposed: float  # rows, by the index
    kept: float
    filtered: tuple[float, ...]  # rows that came to each filter
    compared: float  # pairs that the index read to decide: where bounds decide some, the others


@dataclass(frozen=True, slots=True)
class StateSize:
    """What streams hold while hops ask."""

    rows: tuple[float, ...]  # that a partial result may meet, of each stream
    widths: tuple[tuple[float, ...], ...]  # numbers, items or bytes of each wide column
    together: tuple[float, ...]  # rows of each stream among the partial results that ask at a time
    fresh: tuple[float, ...]  # keys of a row of each stream that no row before it had


def taken(
    bound: BoundQuery, stream: int, orders: Iterable[Order], held: StateSize, statistics: Statistics
) -> Work:
    """Taking one row of a stream, keeping it, and entering it into the indexes that ask for it."""
    spec = bound.spec.streams[stream]
    work = Work(row=1.0, operand=float(len(spec.columns)))
    for form in spec.keys:
        work["text key" if form == "bytes" else "key"] += 1
    work["fresh key"] += held.fresh[stream]
    work["varlen"] += len(spec.varlen)
    work["varlen number"] += sum(held.widths[stream])
    indexes = {
        step.access.identity: step.access
        for order in orders
        for step in order.steps
        if step.stream == stream
    }
    for access in indexes.values():
        work[f"{access.name}: insert"] += 1
        if isinstance(access, Band):  # a cell is half a band
            there = held.rows[stream] * statistics.share(access.predicate) / 2
            work[f"{access.name}: fresh cell"] += math.exp(-there)
        if isinstance(access, Alike):
            work[f"{access.name}: insert number"] += held.widths[stream][access.column]
    return work


def kept(bound: BoundQuery, stream: int) -> Work:
    """Keeping what results will have of one row of a stream."""
    schema = bound.schemas[bound.query.names[stream]]
    return _columns(schema, bound.payload[stream], "kept")


def given(bound: BoundQuery) -> Work:
    """Giving out one result."""
    work = _columns(bound.schema, bound.schema.names, "given")
    work["result"] = 1.0
    return work


def _columns(schema: pa.Schema, names: Iterable[str], what: str) -> Work:
    work = Work()
    for name in names:
        kind: Any = schema.field(name).type
        if pat.is_fixed_size_list(kind):
            work[f"{what} number"] += kind.list_size
        fixed = pat.is_primitive(kind) or pat.is_fixed_size_list(kind)
        work[f"{what} column" if fixed else f"{what} text"] += 1
    return work


def units_of(order: Order, spec: JoinSpec, *, live: bool) -> list[str]:
    """For every hop of an order the name of the index, as its units are called."""
    if live:
        return [
            f"{step.access.name}, later"
            if hop and isinstance(step.access, CHEAPER_LATER)
            else step.access.name
            for hop, step in enumerate(order.steps)
        ]
    by_key = len(order.steps) > 1 and shared_key(spec, order) is not None
    return [
        f"{step.access.name}, key by key"
        if by_key
        else step.access.name
        if hop == 0 or type(step.access).load_for_start is Access.load_for_start
        else f"{step.access.name}, later"
        for hop, step in enumerate(order.steps)
    ]


def asked(name: str, step: OrderHop, counts: HopCounts, held: StateSize) -> Work:
    """What a hop does; ``name``: see `units_of`."""
    access = step.access
    work = Work({f"{name}: probe": counts.asked, f"{name}: candidate": counts.proposed})
    rows = held.rows[step.stream]
    if isinstance(access, Items):
        side = varlen_sides(access.predicates[0], step.stream)[0]
        work[f"{name}: number"] += counts.asked * held.widths[side.stream][side.column]
        if not access.seen.alone:  # sets that have an item in common are compared
            work[f"{name}: entry"] += counts.asked * access.seen.common * rows
    elif isinstance(access, Alike):
        width = held.widths[step.stream][access.column]
        work[f"{name}: candidate number"] += counts.compared * width
        for one in access.predicates:
            side = varlen_sides(one, step.stream)[0]
            looked_at = min(counts.asked, held.together[side.stream]) * rows
            work[f"{name}: row"] += looked_at
            work[f"{name}: number"] += looked_at * held.widths[side.stream][side.column]
    elif isinstance(access, Boxes):
        cut = (rows / BOX_ROWS) ** (1 - 1 / len(access.columns))
        work[f"{name}: box"] += counts.asked * cut
    elif access.looks_at_rows:
        work[f"{name}: row"] += counts.asked * rows
    for kind, seen in zip(filters_of(step), counts.filtered, strict=True):
        work[f"filter: {kind}"] += seen
    work["kept"] += counts.kept
    return work


def filters_of(step: OrderHop) -> Sequence[str]:
    """What the filters of a hop are, in the order in which they are tested."""
    kinds = [type(predicate).__name__.lower() for predicate in step.filters]
    return [*("number" for _ in step.distinct), *("key" for _ in step.implied), *kinds]


def widths_of(rows: Sequence[Rows]) -> tuple[tuple[float, ...], ...]:
    """How many numbers, items or bytes a value of each wide column has, on average."""
    return tuple(
        tuple(float(np.diff(wide.offsets).mean()) if len(rows) else 0.0 for wide in one.varlen)
        for one in rows
    )


def fresh_keys(
    spec: JoinSpec, statistics: Statistics, held: Sequence[float], *, live: bool
) -> tuple[float, ...]:
    """How many keys of a row of each stream are new to a dictionary, were they spread evenly."""
    shares = {p.left.space: statistics.share(p) for p in spec.predicates if isinstance(p, Equal)}
    of_space: Counter[int] = Counter()
    for stream, rows in zip(spec.streams, held, strict=True):
        for space in stream.spaces:
            of_space[space] += max(round(rows), 1)

    def new(space: int) -> float:
        times = of_space[space] * shares.get(space, 1.0)  # that each value is there
        return math.exp(-times) if live else -math.expm1(-times) / times

    return tuple(sum(map(new, stream.spaces)) for stream in spec.streams)


def met(spec: JoinSpec, order: Order, rates: Sequence[float]) -> tuple[float, ...]:
    """Of each stream the rows that a partial result meets where whole tables are joined."""
    found = [0.0] * len(spec.streams)
    bound = [order.start]
    for step in order.steps:
        nearest = min(spec.streams[s].window for s in bound)
        width = spec.streams[step.stream].window + nearest / len(bound)
        found[step.stream] = rates[step.stream] * width
        bound.append(step.stream)
    return tuple(found)


def counts_of(measured: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> HopCounts:
    """What a hop of a pipeline did, since ``before``."""
    old = before or {"asked": 0, "proposed": 0, "kept": 0, "filters": []}
    seen = [float(came) for came, _ in measured["filters"]]
    seen_before = [float(came) for came, _ in old["filters"]] or [0.0] * len(seen)
    return HopCounts(
        float(measured["asked"] - old["asked"]),
        float(measured["proposed"] - old["proposed"]),
        float(measured["kept"] - old["kept"]),
        tuple(new - gone for new, gone in zip(seen, seen_before, strict=True)),
        compared_of(measured) - compared_of(old),
    )


def compared_of(measured: Mapping[str, Any]) -> float:
    """Pairs that a hop of a pipeline read to decide."""
    count = measured.get("compared", -1)
    return float(measured["proposed"] if count < 0 else count)
