"""Trees of joins of two that keep what they found: what would one cost, and how do rows flow?

The engine joins all streams in one operator; a tree says where a query may be cut over sites, and
whether keeping intermediate results would pay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pyarrow as pa
from windjoin import plan_work as work
from windjoin.kernels.equality import Equality
from windjoin.plan_model import NANOSECOND, Alternative, Model
from windjoin.plan_work import Work

Tree = Any  # the number of a stream, or a pair of trees
Side = frozenset[int]


def best_tree(model: Model) -> tuple[float, Tree]:
    """The cheapest tree of joins of two, and the CPU seconds per second of its joins."""
    everything = frozenset(range(len(model.names)))
    best: dict[Side, tuple[float, Tree]] = {frozenset((s,)): (0.0, s) for s in everything}
    for size in range(2, len(everything) + 1):
        for members in combinations(sorted(everything), size):
            whole = frozenset(members)
            best[whole] = min(
                (_joined(model, best, left, whole - left) for left in _halves(whole)),
                key=lambda one: one[0],
            )
    return best[everything]


def tree_plan(model: Model) -> Alternative:
    """The best tree as a plan.  The engine does not run it; it says when that would cost less."""
    joins, tree = best_tree(model)
    results = sum(model.found_from(stream) for stream in range(len(model.names)))
    done = Work()
    for stream, name in enumerate(model.names):
        done.add(
            work.taken(model.bound, stream, (), model._held, model.statistics),
            model.rates[name],
        )
        done.add(work.kept(model.bound, stream), model.rates[name])
        done["push"] += model.rates[name] / model.batch_rows
    done.add(work.given(model.bound), results)
    cost = joins + model.costs.nanoseconds(done, live=True) * NANOSECOND
    share = min(1.0, model.cpu / cost) if cost else 1.0
    completeness = share ** len(model.names) if share < 1 else 1.0
    orders: dict[str, tuple[str, ...]] = {"": (tree_text(tree, model.names),)}
    return Alternative("tree", orders, {}, results * completeness, completeness, cost, 0.0)


def _joined(
    model: Model, best: Mapping[Side, tuple[float, Tree]], left: Side, right: Side
) -> tuple[float, Tree]:
    rates = combined_rate(model, left), combined_rate(model, right)
    held = [
        float(model.statistics.rows[next(iter(side))])
        if len(side) == 1
        else combined_rate(model, side) * _window(model, side)
        for side in (left, right)
    ]
    share = _between(model, left, right)
    index = Equality.name
    done = Work()
    for rate, met in zip(rates, reversed(held), strict=True):
        done[f"{index}: insert"] += rate
        done[f"{index}: probe"] += rate
        done[f"{index}: candidate"] += rate * met * share
        done["kept"] += rate * met * share
    cost = best[left][0] + best[right][0] + model.costs.nanoseconds(done, live=True) * NANOSECOND
    return cost, (best[left][1], best[right][1])


def _window(model: Model, side: Side) -> float:
    """Seconds for which a partial result stays joinable, at most."""
    return min(model.spec.streams[s].window for s in side) / model.ticks


def _between(model: Model, left: Side, right: Side) -> float:
    """Share of the pairs of two sides that every condition between them lets pass."""
    crossing = [
        p
        for p in model.spec.predicates
        if p.streams_read <= left | right and p.streams_read & left and p.streams_read & right
    ]
    return model.share_of(crossing)


def combined_rate(model: Model, side: Side) -> float:
    """Partial results over some streams, per second."""
    members = sorted(side)
    if len(members) == 1:
        return model.joined_rate(members[0])
    inside = [p for p in model.spec.predicates if p.streams_read <= side]
    share = model.share_of(inside)
    total = 0.0
    for newest in members:
        one = model.joined_rate(newest)
        for other in members:
            if other != newest:
                one *= model.statistics.rows[other]
        total += one
    return total * share


def needed_schema(model: Model, stream: str) -> pa.Schema:
    """The columns of a stream that are read, by conditions or for results."""
    schema = model.bound.schemas[stream]
    query = model.bound.query
    wanted = {query.streams[query.names.index(stream)].time}
    for expression in (*query.on, *(query.select or ())):
        wanted |= {c.name for c in expression.columns() if c.stream == stream}
    every = query.select is None
    return pa.schema([field for field in schema if every or field.name in wanted])


def _halves(whole: Side) -> list[Side]:
    """One half of every way to part some streams in two."""
    first, *rest = sorted(whole)
    return [
        frozenset((first, *others))
        for size in range(len(rest))
        for others in combinations(rest, size)
    ]


def tree_text(tree: Tree, names: Sequence[str]) -> str:
    """A tree of joins as text: ``((a b) c)``."""
    if isinstance(tree, int):
        return names[tree]
    return f"({' '.join(tree_text(half, names) for half in tree)})"
