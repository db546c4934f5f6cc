"""What a plan of a continuous query gives and takes at given rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.kernels.order import INSERT_COST, PER_RESULT, KeyClasses, Order, Step
from windjoin.kernels.spec import Equal, JoinSpec, Predicate
from windjoin.kernels.statistics import Statistics
from windjoin.unit_costs import UnitCosts

NANOSECOND = 1e-9


@dataclass(frozen=True, slots=True)
class PlannedHop:
    """One hop of a row's way, per second."""

    stream: str
    index: str
    asked: float  # partial results per second that ask
    kept: float  # and that leave
    share: float  # of the rows in the window that a partial result is kept with
    cost: float  # CPU seconds per second


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan with its rate and cost."""

    kind: str  # "hops": as this engine runs; "tree": joins two by two that keep what they found
    orders: dict[str, tuple[str, ...]]  # for rows of each stream, which others they meet, in turn
    hops: dict[str, tuple[PlannedHop, ...]]
    output_rate: float
    completeness: float
    cost: float
    latency: float

    @property
    def saturated(self) -> bool:
        """Whether not all rows can be joined."""
        return self.completeness < 1.0


class Model:
    """Rates and costs of one query on one machine."""

    def __init__(
        self,
        bound: BoundQuery,
        statistics: Statistics,
        rates: Mapping[str, float],
        cpu: float,
        batch_rows: int,
        costs: UnitCosts,
    ) -> None:
        self.bound = bound
        self.spec: JoinSpec = bound.spec
        self.statistics = statistics
        self.rates = rates
        self.cpu = cpu
        self.batch_rows = batch_rows
        self.costs = costs
        self.names = bound.query.names

    def alternative(self, orders: Sequence[Order]) -> Alternative:
        """The plan in which rows of every stream go their order of hops."""
        hops = {self.names[order.start]: self._hops(order) for order in orders}
        results = sum(one[-1].kept for one in hops.values())
        taken = sum(map(self._taken, range(len(self.names)), [orders] * len(self.names)))
        given = results * self._per_result() * NANOSECOND
        cost = taken + given + sum(hop.cost for one in hops.values() for hop in one)
        share = self._share(taken, given, list(hops.values()))
        completeness = share ** len(self.names) if share < 1 else 1.0
        arriving = sum(self.rates.values())
        return Alternative(
            "hops",
            {name: tuple(hop.stream for hop in one) for name, one in hops.items()},
            hops,
            results * completeness,
            completeness,
            cost,
            cost / arriving if arriving else 0.0,
        )

    def tree(self, orders: Sequence[Order]) -> Alternative:
        """The best tree of joins of two that keep what they found.

        The engine does not run it; it says when that would cost less.
        """
        everything = frozenset(range(len(self.names)))
        flat = self.alternative(orders)
        best = self._trees(everything)[everything]
        results = flat.output_rate / flat.completeness if flat.completeness else 0.0
        taken = sum(self._row(s) * self.rates[name] for s, name in enumerate(self.names))
        cost = best[0] + (taken + results * self._per_result()) * NANOSECOND
        share = min(1.0, self.cpu / cost) if cost else 1.0
        completeness = share ** len(self.names) if share < 1 else 1.0
        return Alternative(
            "tree",
            {"": (tree_text(best[1], self.names),)},
            {},
            results * completeness,
            completeness,
            cost,
            0.0,
        )

    # -- hops -----------------------------------------------------------------------------

    def _hops(self, order: Order) -> tuple[PlannedHop, ...]:
        asked = self.rates[self.names[order.start]]
        found = []
        for step in order.steps:
            each = step.results / step.partials if step.partials else 0.0
            cost = asked * self._probe(step) * NANOSECOND
            rows = self.statistics.rows[step.stream]
            found.append(
                PlannedHop(
                    self.names[step.stream],
                    step.access.name,
                    asked,
                    asked * each,
                    each / rows if rows else 0.0,
                    cost,
                )
            )
            asked *= each
        # how much is found does not depend on the order, whatever its hops expect
        last = found[-1]
        kept = self._found_from(order.start)
        each = kept / last.asked if last.asked else 0.0
        rows = self.statistics.rows[order.steps[-1].stream]
        found[-1] = replace(last, kept=kept, share=each / rows if rows else 0.0)
        return tuple(found)

    def _found_from(self, start: int) -> float:
        """Results per second whose latest member is of a stream."""
        found = self.rates[self.names[start]] * self._share_of(self.spec.predicates)
        for stream, rows in enumerate(self.statistics.rows):
            found *= 1.0 if stream == start else rows
        return found

    def _probe(self, step: Step) -> float:
        """Nanoseconds per partial result that asks."""
        expected = step.cost / step.partials if step.partials else 0.0
        return expected * self.costs.index(step.access.name, live=True)

    def _taken(self, stream: int, orders: Sequence[Order]) -> float:
        """CPU seconds per second for taking and keeping the rows of a stream."""
        indexes = {
            step.access.identity
            for order in orders
            for step in order.steps
            if step.stream == stream
        }
        each = self._row(stream) + INSERT_COST * len(indexes)
        return self.rates[self.names[stream]] * each * NANOSECOND

    def _row(self, stream: int) -> float:
        kept = len(self.bound.payload[stream])
        return self.costs.push / self.batch_rows + self.costs.row + self.costs.column * kept

    def _per_result(self) -> float:
        columns = len(self.bound.schema.names)
        return PER_RESULT + self.costs.result + self.costs.gathered * columns

    def _share(self, taken: float, given: float, hops: Sequence[tuple[PlannedHop, ...]]) -> float:
        """The share of the rows that can be taken, the rest being lost before it is looked at.

        Of taken rows alone the k-th hop costs by the k-th power of that share.
        """

        def needed(share: float) -> float:
            total = taken * share + given * share ** len(self.names)
            for one in hops:
                total += sum(hop.cost * share ** (k + 1) for k, hop in enumerate(one))
            return total

        if needed(1.0) <= self.cpu:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if needed(middle) <= self.cpu else (low, middle)
        return low

    # -- trees ----------------------------------------------------------------------------

    def best_tree(self) -> Any:
        """The cheapest tree of joins of two: numbers of streams, in pairs of pairs."""
        everything = frozenset(range(len(self.names)))
        return self._trees(everything)[everything][1]

    def _trees(self, everything: frozenset[int]) -> dict[frozenset[int], Any]:
        """For every set of streams the cheapest tree: (CPU seconds per second, pairs of pairs)."""
        best: dict[frozenset[int], Any] = {
            frozenset((s,)): (0.0, s) for s in range(len(self.names))
        }
        for size in range(2, len(everything) + 1):
            for members in combinations(sorted(everything), size):
                whole = frozenset(members)
                best[whole] = min(
                    (self._joined(best, left, whole - left) for left in _halves(whole)),
                    key=lambda one: one[0],
                )
        return best

    def _joined(
        self, best: Mapping[frozenset[int], Any], left: frozenset[int], right: frozenset[int]
    ) -> tuple[float, Any]:
        rates = self.combined_rate(left), self.combined_rate(right)
        held = [
            self._held(side) if len(side) == 1 else self.combined_rate(side) * self._window(side)
            for side in (left, right)
        ]
        share = self._between(left, right)
        found = [rates[0] * held[1] * share, rates[1] * held[0] * share]
        work = sum(
            rate * (2 * INSERT_COST) + kept * PER_RESULT
            for rate, kept in zip(rates, found, strict=True)
        )
        cost = best[left][0] + best[right][0] + work * NANOSECOND
        return cost, (best[left][1], best[right][1])

    def _held(self, side: frozenset[int]) -> float:
        (stream,) = side
        return float(self.statistics.rows[stream])

    def _window(self, side: frozenset[int]) -> float:
        """Seconds for which a partial result stays joinable, at most."""
        ticks = 1.0 if self.bound.clock.step is None else float(1 / self.bound.clock.step)
        return min(self.spec.streams[s].window for s in side) / ticks

    def _between(self, left: frozenset[int], right: frozenset[int]) -> float:
        """Share of the pairs of two sides that every condition between them lets pass."""
        crossing = [
            p
            for p in self.spec.predicates
            if p.streams_read <= left | right and p.streams_read & left and p.streams_read & right
        ]
        return self._share_of(crossing)

    def _share_of(self, predicates: Sequence[Predicate]) -> float:
        """Share of combinations that pass; an equality that follows from others says nothing."""
        known = KeyClasses()
        return self.statistics.share_of(
            p for p in predicates if not isinstance(p, Equal) or known.unite(p.left, p.right)
        )

    def needed_schema(self, stream: str) -> pa.Schema:
        """The columns of a stream that are read, by conditions or for results."""
        schema = self.bound.schemas[stream]
        query = self.bound.query
        wanted = {query.streams[query.names.index(stream)].time}
        for expression in (*query.on, *(query.select or ())):
            wanted |= {c.name for c in expression.columns() if c.stream == stream}
        every = query.select is None
        return pa.schema([field for field in schema if every or field.name in wanted])

    def combined_rate(self, side: frozenset[int]) -> float:
        """Partial results over some streams, per second."""
        members = sorted(side)
        if len(members) == 1:
            return self.rates[self.names[members[0]]]
        inside = [p for p in self.spec.predicates if p.streams_read <= side]
        share = self._share_of(inside)
        total = 0.0
        for newest in members:
            one = self.rates[self.names[newest]]
            for other in members:
                if other != newest:
                    one *= self.statistics.rows[other]
            total += one
        return total * share


def _halves(whole: frozenset[int]) -> list[frozenset[int]]:
    """One half of every way to part some streams in two."""
    first, *rest = sorted(whole)
    return [
        frozenset((first, *others))
        for size in range(len(rest))
        for others in combinations(rest, size)
    ]


def tree_text(tree: Any, names: Sequence[str]) -> str:
    """A tree of joins as text: ``((a b) c)``."""
    if isinstance(tree, int):
        return names[tree]
    return f"({' '.join(tree_text(half, names) for half in tree)})"
