"""In which order to bind the streams, through which index, with which filters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from windjoin.kernels.access import Access, Situation, kinds
from windjoin.kernels.spec import (
    Between,
    Compare,
    Equal,
    Function,
    JoinSpec,
    Key,
    NotEqual,
    Opaque,
    Predicate,
    Similarity,
)
from windjoin.kernels.statistics import Statistics

EXHAUSTIVE_UP_TO = 5  # streams; beyond, the cheapest next hop is taken
PER_RESULT = 2.0  # nanoseconds
FILTER_COST = {
    Equal: 1.5,
    NotEqual: 1.5,
    Compare: 1.5,
    Between: 1.5,
    Function: 3.0,
    Similarity: 20.0,
    Opaque: 60.0,
}
INSERT_COST = 12.0


@dataclass(frozen=True)
class Step:
    """One hop of an order."""

    stream: int
    access: Access
    filters: tuple[Predicate, ...]
    implied: tuple[tuple[Key, Key], ...]  # derived equalities that the access did not take
    distinct: tuple[int, ...]  # bound streams whose row must be another one
    partials: float  # expected partial results that ask
    results: float  # expected partial results that leave
    cost: float  # nanoseconds, expected


@dataclass(frozen=True)
class Order:
    """A starting stream and its hops."""

    start: int
    steps: tuple[Step, ...]
    cost: float

    @property
    def streams(self) -> tuple[int, ...]:
        return (self.start, *(step.stream for step in self.steps))


def streams_of(predicate: Predicate) -> frozenset[int]:
    """The streams a predicate speaks of."""
    if isinstance(predicate, Opaque):
        return frozenset(predicate.streams)
    if isinstance(predicate, Function):
        return frozenset(operand.stream for operand in predicate.operands)
    return frozenset((predicate.left.stream, predicate.right.stream))


class KeyClasses:
    """Keys that are known to be equal."""

    def __init__(self) -> None:
        self._class: dict[Key, set[Key]] = {}

    def members(self, key: Key) -> set[Key]:
        return self._class.setdefault(key, {key})

    def unite(self, left: Key, right: Key) -> None:
        merged = self.members(left) | self.members(right)
        for key in merged:
            self._class[key] = merged

    def same(self, left: Key, right: Key) -> bool:
        return right in self.members(left)


def best_order(spec: JoinSpec, statistics: Statistics, start: int | None = None) -> Order:
    """The cheapest order, from ``start`` or from the best stream to start with."""
    starts = range(len(spec.streams)) if start is None else (start,)
    search = _Search(spec, statistics)
    return min((search.from_stream(first) for first in starts), key=lambda order: order.cost)


class _Search:
    def __init__(self, spec: JoinSpec, statistics: Statistics) -> None:
        self.spec = spec
        self.statistics = statistics
        self.closure = KeyClasses()
        for predicate in spec.predicates:
            if isinstance(predicate, Equal):
                self.closure.unite(predicate.left, predicate.right)

    def from_stream(self, start: int) -> Order:
        rows = float(max(self.statistics.rows[start], 1))
        build = INSERT_COST * sum(n for s, n in enumerate(self.statistics.rows) if s != start)
        steps, cost = self._rest((start,), rows)
        return Order(start, tuple(steps), cost + build)

    def _rest(self, bound: tuple[int, ...], partials: float) -> tuple[list[Step], float]:
        """The cheapest hops to all streams not yet bound."""
        targets = self._next_targets(bound)
        if not targets:
            return [], 0.0
        steps = [self._step(bound, target, partials) for target in targets]
        if len(self.spec.streams) > EXHAUSTIVE_UP_TO:
            steps = [min(steps, key=lambda step: step.cost + PER_RESULT * step.results)]
        best: tuple[list[Step], float] | None = None
        for step in steps:
            rest, cost = self._rest((*bound, step.stream), step.results)
            if best is None or step.cost + cost < best[1]:
                best = [step, *rest], step.cost + cost
        assert best is not None, "there is at least one target"
        return best

    def _next_targets(self, bound: tuple[int, ...]) -> list[int]:
        """Streams that some predicate ties to the bound ones; any other only if there is none."""
        left = [s for s in range(len(self.spec.streams)) if s not in bound]
        tied = [s for s in left if self._decidable(bound, s) or self._equalities(bound, s)]
        return tied or left

    def _decidable(self, bound: tuple[int, ...], target: int) -> list[Predicate]:
        now = frozenset((*bound, target))
        return [p for p in self.spec.predicates if target in streams_of(p) and streams_of(p) <= now]

    def _equalities(self, bound: tuple[int, ...], target: int) -> tuple[tuple[Key, Key], ...]:
        """Keys of the target and bound keys equal to them; those the user wrote come first."""
        written, derived = [], []
        for predicate in self.spec.predicates:
            if not isinstance(predicate, Equal):
                continue
            for key, other in (
                (predicate.left, predicate.right),
                (predicate.right, predicate.left),
            ):
                if key.stream != target:
                    continue
                if other.stream in bound:
                    written.append((other, key))
                derived += [
                    (member, key) for member in self.closure.members(key) if member.stream in bound
                ]
        derived.sort(key=lambda pair: (pair[1].key, pair[0].stream, pair[0].key))
        return tuple(dict.fromkeys(written + derived))

    def _known_equal(self, bound: tuple[int, ...]) -> KeyClasses:
        """What the hops so far have made sure of: every equality among bound streams."""
        known = KeyClasses()
        for left, right in combinations(bound, 2):
            for predicate in self.spec.predicates:
                if isinstance(predicate, Equal) and streams_of(predicate) == {left, right}:
                    known.unite(predicate.left, predicate.right)
            for key in self.closure._class:
                if key.stream == left:
                    for member in self.closure.members(key):
                        if member.stream == right:
                            known.unite(key, member)
        return known

    def _step(self, bound: tuple[int, ...], target: int, partials: float) -> Step:
        spec, statistics = self.spec, self.statistics
        windows = [spec.streams[s].window for s in bound]
        width = spec.streams[target].window + min(windows) / max(len(bound), 1)
        window_rows = statistics.rates[target] * max(width, 1)
        if statistics.rows[target]:
            window_rows = min(window_rows, statistics.rows[target])
        predicates = tuple(self._decidable(bound, target))
        situation = Situation(
            spec,
            statistics,
            bound,
            target,
            predicates,
            self._equalities(bound, target),
            partials,
            window_rows,
        )
        choices = []
        for kind in kinds():
            for access in kind.options(situation):
                left = self._filters(access, predicates, bound)
                cost = access.cost + sum(FILTER_COST[type(p)] * access.candidates for p in left[0])
                choices.append((cost, access, left))
        cost, access, (filters, implied) = min(choices, key=lambda choice: choice[0])
        kept = window_rows * statistics.share_of(
            p
            for p in predicates
            if not (isinstance(p, Equal) and self._redundant(p, bound, access))
        )
        distinct = tuple(
            a if b == target else b
            for a, b in spec.distinct
            if target in (a, b) and (a in bound or b in bound)
        )
        return Step(
            target, access, filters, implied, distinct, partials, partials * kept, partials * cost
        )

    def _redundant(self, predicate: Equal, bound: tuple[int, ...], access: Access) -> bool:
        """Whether an equality follows from what is known and what the index decides."""
        known = self._known_equal(bound)
        for pair in getattr(access, "parts", ()):
            known.unite(*pair)
        return known.same(predicate.left, predicate.right)

    def _filters(
        self, access: Access, predicates: tuple[Predicate, ...], bound: tuple[int, ...]
    ) -> tuple[tuple[Predicate, ...], tuple[tuple[Key, Key], ...]]:
        """Predicates still to be tested, cheap and selective ones first; derived equalities too."""
        known = self._known_equal(bound)
        for pair in getattr(access, "parts", ()):
            known.unite(*pair)
        left = []
        for p in predicates:
            if p in access.covers:
                continue
            if isinstance(p, Equal):
                if known.same(p.left, p.right):
                    continue
                known.unite(p.left, p.right)
            left.append(p)
        implied = []
        for pair in self._equalities(bound, access.target):
            if not known.same(*pair):
                known.unite(*pair)
                implied.append(pair)
        left.sort(key=lambda p: FILTER_COST[type(p)] / max(1 - self.statistics.share(p), 1e-3))
        return tuple(left), tuple(implied)
