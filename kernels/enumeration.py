"""All orders of hops from a stream, not only the cheapest: what a planner chooses among."""

from __future__ import annotations

from collections.abc import Iterator

from windjoin.kernels.access import kinds
from windjoin.kernels.order import Order, OrderHop, hops_from, order_through
from windjoin.kernels.spec import JoinSpec
from windjoin.kernels.statistics import Statistics

EXHAUSTIVE_UP_TO = 6  # streams; beyond, so many unfinished orders go on
BEAM = 64


def every_order(spec: JoinSpec, statistics: Statistics, start: int) -> list[Order]:
    """Orders from ``start``, cheapest first: all of up to six streams, the best of more.

    Each hop goes through the index that is cheapest for it.
    """
    found = list(_all(spec, statistics, start)) if _few(spec) else _beam(spec, statistics, start)
    return sorted(found, key=lambda order: order.cost)


def _few(spec: JoinSpec) -> bool:
    return len(spec.streams) <= EXHAUSTIVE_UP_TO


def _all(spec: JoinSpec, statistics: Statistics, start: int) -> Iterator[Order]:
    unfinished = [Order(start, (), 0.0)]
    while unfinished:
        order = unfinished.pop()
        longer = _longer(spec, statistics, order)
        unfinished += longer
        if not longer:
            yield order


def _beam(spec: JoinSpec, statistics: Statistics, start: int) -> list[Order]:
    kept = [Order(start, (), 0.0)]
    for _ in range(len(spec.streams) - 1):
        longer = [one for order in kept for one in _longer(spec, statistics, order)]
        # of orders over the same streams the rest costs the same but for what leaves them
        longer.sort(key=lambda order: order.cost + order.steps[-1].results)
        kept = longer[:BEAM]
    return kept


def _longer(spec: JoinSpec, statistics: Statistics, order: Order) -> list[Order]:
    """The order with each stream that can come next; those that something ties to it, if any."""
    left = [s for s in range(len(spec.streams)) if s not in order.streams]
    steps = [(target, _step(spec, statistics, order, target)) for target in left]
    tied = [step for _, step in steps if _ties(step)]
    chosen = tied or [step for _, step in steps]
    return [Order(order.start, (*order.steps, step), order.cost + step.cost) for step in chosen]


def _ties(step: OrderHop) -> bool:
    """Whether a condition, or what follows from some, ties the stream to those before it."""
    access = step.access
    return bool(access.covers or access.decided or step.filters or step.implied)


def _step(spec: JoinSpec, statistics: Statistics, order: Order, target: int) -> OrderHop:
    partials = order.steps[-1].results if order.steps else None
    return hops_from(spec, statistics, order.streams, (target,), partials).steps[0]


def through_others(spec: JoinSpec, statistics: Statistics, order: Order) -> Iterator[Order]:
    """An order with each hop in turn through each other kind of index that can serve it."""
    hops: list[tuple[int, str | None]] = [(s.stream, s.access.name) for s in order.steps]
    for number, step in enumerate(order.steps):
        for kind in kinds():
            if kind.name == step.access.name:
                continue
            changed = [*hops[:number], (step.stream, kind.name), *hops[number + 1 :]]
            found = order_through(spec, statistics, order.start, changed)
            if found.steps[number].access.name == kind.name:
                yield found
