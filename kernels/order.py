"""In which order to bind the streams, through which index, with which filters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from windjoin.kernels.access import Access, Situation, kinds
from windjoin.kernels.spec import (
    Equal,
    JoinSpec,
    Key,
    Predicate,
)
from windjoin.kernels.statistics import DERIVED_SHARE, Statistics

EXHAUSTIVE_UP_TO = 5  # streams; beyond, the cheapest next hop is taken
PER_RESULT = 2.0  # nanoseconds
INSERT_COST = 12.0


@dataclass(frozen=True)
class OrderHop:
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
    steps: tuple[OrderHop, ...]
    cost: float

    @property
    def streams(self) -> tuple[int, ...]:
        return (self.start, *(step.stream for step in self.steps))

    def over(self, spec: JoinSpec) -> Order:
        """The same for a spec of the same query whose `Opaque` predicates look up other rows."""
        steps = tuple(
            replace(step, filters=tuple(spec.predicates[p.place] for p in step.filters))
            for step in self.steps
        )
        return replace(self, steps=steps)


class KeyClasses:
    """Keys that are known to be equal."""

    def __init__(self, classes: Iterable[frozenset[Key]] = ()) -> None:
        self._class = {key: members for members in classes for key in members}

    def members(self, key: Key) -> frozenset[Key]:
        return self._class.get(key) or frozenset((key,))

    def unite(self, left: Key, right: Key) -> bool:
        """Whether that is news."""
        if right in self.members(left):
            return False
        merged = self.members(left) | self.members(right)
        for key in merged:
            self._class[key] = merged
        return True

    def classes(self) -> set[frozenset[Key]]:
        return set(self._class.values())


def best_order(spec: JoinSpec, statistics: Statistics, start: int | None = None) -> Order:
    """The cheapest order, from ``start`` or from the best stream to start with."""
    starts = range(len(spec.streams)) if start is None else (start,)
    search = _Search(spec, statistics)
    return min((search.from_stream(first) for first in starts), key=lambda order: order.cost)


def hops_from(
    spec: JoinSpec,
    statistics: Statistics,
    bound: tuple[int, ...],
    targets: tuple[int, ...],
    partials: float | None = None,
) -> Order:
    """The hops from partial results over ``bound`` to ``targets``: all others, or in this order.

    ``partials``: how many there are; if nobody knows, as many as rows of the first stream
    """
    search = _Search(spec, statistics)
    partials = float(max(statistics.rows[bound[0]], 1)) if partials is None else partials
    if len(targets) > 1 and len(bound) + len(targets) == len(spec.streams):
        steps, cost = search._rest(bound, partials)
        return Order(bound[0], tuple(steps), cost)
    taken: list[OrderHop] = []
    for target in targets:
        taken.append(search._step(bound, target, partials))
        bound, partials = (*bound, target), taken[-1].results
    return Order(bound[0], tuple(taken), sum(s.cost for s in taken))


def order_through(
    spec: JoinSpec, statistics: Statistics, start: int, hops: Sequence[tuple[int, str | None]]
) -> Order:
    """An order by its hops: streams, and names of indexes that serve them (None: the cheapest)."""
    search = _Search(spec, statistics)
    bound: tuple[int, ...] = (start,)
    partials = float(max(statistics.rows[start], 1))
    taken: list[OrderHop] = []
    for target, name in hops:
        taken.append(search._step(bound, target, partials, named=name))
        bound, partials = (*bound, target), taken[-1].results
    return Order(start, tuple(taken), sum(step.cost for step in taken))


def cost_of(spec: JoinSpec, statistics: Statistics, order: Order) -> float:
    """Nanoseconds that the hops of an order, through its own indexes, are expected to take."""
    search = _Search(spec, statistics)
    bound: tuple[int, ...] = (order.start,)
    partials, cost = float(max(statistics.rows[order.start], 1)), 0.0
    for used in order.steps:
        step = search._step(bound, used.stream, partials, used.access.identity)
        bound, partials, cost = (*bound, step.stream), step.results, cost + step.cost
    return cost


class _Search:
    def __init__(self, spec: JoinSpec, statistics: Statistics) -> None:
        self.spec = spec
        self.statistics = statistics
        self.closure = KeyClasses()
        self._streams = [p.streams_read for p in spec.predicates]
        self._known: dict[frozenset[int], set[frozenset[Key]]] = {}
        for predicate in spec.predicates:
            if isinstance(predicate, Equal):
                self.closure.unite(predicate.left, predicate.right)

    def from_stream(self, start: int) -> Order:
        rows = float(max(self.statistics.rows[start], 1))
        build = INSERT_COST * sum(n for s, n in enumerate(self.statistics.rows) if s != start)
        steps, cost = self._rest((start,), rows)
        return Order(start, tuple(steps), cost + build)

    def _rest(self, bound: tuple[int, ...], partials: float) -> tuple[list[OrderHop], float]:
        """The cheapest hops to all streams not yet bound."""
        targets = self._next_targets(bound)
        if not targets:
            return [], 0.0
        steps = [self._step(bound, target, partials) for target in targets]
        if len(self.spec.streams) > EXHAUSTIVE_UP_TO:
            steps = [min(steps, key=lambda step: step.cost + PER_RESULT * step.results)]
        best: tuple[list[OrderHop], float] | None = None
        for step in sorted(steps, key=lambda step: step.cost):
            if best is not None and step.cost >= best[1]:
                break  # whatever comes after it
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

    def _decidable(self, bound: tuple[int, ...], target: int) -> tuple[Predicate, ...]:
        now = {*bound, target}
        return tuple(
            p
            for p in self.spec.predicates
            if target in self._streams[p.place] and self._streams[p.place] <= now
        )

    def _equalities(self, bound: tuple[int, ...], target: int) -> tuple[tuple[Key, Key], ...]:
        """Keys of the target and bound keys equal to them; those the user wrote come first."""
        written: list[tuple[Key, Key]] = []
        for p in self._decidable(bound, target):
            if isinstance(p, Equal):
                turned = p.left.stream == target
                written.append((p.right, p.left) if turned else (p.left, p.right))
        derived = [
            (member, key)
            for members in self.closure.classes()
            for key in members
            if key.stream == target
            for member in members
            if member.stream in bound
        ]
        derived.sort(key=lambda pair: (pair[1].key, pair[0].stream, pair[0].key))
        return tuple(dict.fromkeys(written + derived))

    def _known_equal(self, bound: tuple[int, ...]) -> KeyClasses:
        """What the hops so far have made sure of: every equality between two bound streams."""
        streams = frozenset(bound)
        if streams not in self._known:
            reached = (
                frozenset(key for key in members if key.stream in streams)
                for members in self.closure.classes()
            )
            self._known[streams] = {r for r in reached if len({key.stream for key in r}) > 1}
        return KeyClasses(self._known[streams])

    def _step(
        self,
        bound: tuple[int, ...],
        target: int,
        partials: float,
        only: Hashable = None,
        named: str | None = None,
    ) -> OrderHop:
        """The cheapest hop to a target; ``only``: the identity of the access to take, ``named``:
        what kind of index it is."""
        predicates = self._decidable(bound, target)
        equalities = self._equalities(bound, target)
        rows = self._window_rows(bound, target)
        situation = Situation(
            self.spec, self.statistics, bound, target, predicates, equalities, partials, rows
        )
        offered = [access for kind in kinds() for access in kind.options(situation)]
        choices = []
        wanted = [a for a in offered if only in (None, a.identity) and named in (None, a.name)]
        for access in wanted or offered:
            left = self._filters(access, situation)
            cost = access.cost + sum(p.filter_cost * access.candidates for p in left[0])
            choices.append((cost, access, left))
        cost, access, (filters, implied) = min(choices, key=lambda choice: choice[0])
        distinct = tuple(
            a if b == target else b
            for a, b in self.spec.distinct
            if target in (a, b) and (a in bound or b in bound)
        )
        kept = rows * self._share(situation)
        return OrderHop(
            target, access, filters, implied, distinct, partials, partials * kept, partials * cost
        )

    def _window_rows(self, bound: tuple[int, ...], target: int) -> float:
        """Rows of the target that a partial result meets, whatever their values."""
        windows = [self.spec.streams[s].window for s in bound]
        width = self.spec.streams[target].window + min(windows) / max(len(bound), 1)
        rows = self.statistics.rates[target] * max(width, 1)
        return min(rows, self.statistics.rows[target]) if self.statistics.rows[target] else rows

    def _share(self, situation: Situation) -> float:
        """Share of the rows that pass: every predicate but what follows from others."""
        known = self._known_equal(situation.bound)
        share = self.statistics.share_of(
            p
            for p in situation.predicates
            if not isinstance(p, Equal) or known.unite(p.left, p.right)
        )
        for pair in situation.equalities:
            if known.unite(*pair):
                share *= DERIVED_SHARE
        return share

    def _filters(
        self, access: Access, situation: Situation
    ) -> tuple[tuple[Predicate, ...], tuple[tuple[Key, Key], ...]]:
        """Predicates still to be tested, cheap and selective ones first; derived equalities too."""
        known = self._known_equal(situation.bound)
        for pair in access.decided:
            known.unite(*pair)
        left = [
            p
            for p in situation.predicates
            if p not in access.covers and (not isinstance(p, Equal) or known.unite(p.left, p.right))
        ]
        implied = tuple(pair for pair in situation.equalities if known.unite(*pair))
        left.sort(key=lambda p: p.filter_cost / max(1 - self.statistics.share(p), 1e-3))
        return tuple(left), implied
