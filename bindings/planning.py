"""How `windjoin.plan` finds a plan: all orders of hops, each with its rate and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windjoin.assumed import assumed_schemas
from windjoin.binding import BoundQuery
from windjoin.dividing import divided, whole
from windjoin.errors import QueryError
from windjoin.fragments import Site
from windjoin.inputs import as_table
from windjoin.kernels.batch import statistics_of
from windjoin.kernels.enumeration import every_order
from windjoin.kernels.order import Order
from windjoin.kernels.statistics import Statistics
from windjoin.plan_model import Alternative, Model
from windjoin.planner import Plan
from windjoin.query import Query
from windjoin.unit_costs import unit_costs

MOST_ALTERNATIVES = 200


def planned(
    query: Query,
    rates: dict[str, float],
    statistics: Mapping[str, Any] | None,
    cpu: float,
    batch_rows: int,
    sites: Mapping[str, Site] | None,
    links: Mapping[tuple[str, str], float] | None,
    weights: tuple[float, float],
) -> Plan:
    """The plan of a query, as `windjoin.plan` is asked for it."""
    bound, shares, assumed = _learned(query, statistics)
    model = Model(bound, _at_rates(bound, shares, rates), rates, cpu, batch_rows, unit_costs())
    alternatives = tuple(_alternatives(model)[:MOST_ALTERNATIVES])
    fragments = (
        whole(query, model, alternatives[0], assumed)
        if sites is None
        else divided(query, model, alternatives[0], sites, links, weights, assumed)
    )
    return Plan(query, rates, alternatives, fragments, assumed, cpu, bound.schemas)


def _learned(
    query: Query, tables: Mapping[str, Any] | None
) -> tuple[BoundQuery, Statistics | None, bool]:
    """The query bound to the schemas of some tables, and what these say of it."""
    if tables is None:
        return query.bind(assumed_schemas(query)), None, True
    missing = [name for name in query.names if name not in tables]
    if missing:
        raise QueryError(f"statistics: there is no table of stream {missing[0]!r}")
    read = [as_table(tables[name], name) for name in query.names]
    bound = query.bind({name: t.schema for name, t in zip(query.names, read, strict=True)})
    rows = [bound.prepare(number, table).rows for number, table in enumerate(read)]
    return bound, statistics_of(bound.spec, rows), False


def _at_rates(bound: BoundQuery, seen: Statistics | None, rates: Mapping[str, float]) -> Statistics:
    """Statistics of live windows at these rates, in rows and ticks."""
    ticks = 1.0 if bound.clock.step is None else float(1 / bound.clock.step)
    per_tick = tuple(rates[name] / ticks for name in bound.query.names)
    held = tuple(
        max(round(rate * stream.window), 1)
        for rate, stream in zip(per_tick, bound.spec.streams, strict=True)
    )
    if seen is None:
        return Statistics(held, per_tick, {})
    return Statistics(held, per_tick, seen.selectivity, seen.joint, seen.items)


def _alternatives(model: Model) -> list[Alternative]:
    """Every plan that was looked at, best first: each stream's orders beside the best of others."""
    streams = range(len(model.spec.streams))
    orders = [every_order(model.spec, model.statistics, start) for start in streams]
    best = [choices[0] for choices in orders]
    plans: list[Sequence[Order]] = [best]
    for start, choices in enumerate(orders):
        plans += [[*best[:start], other, *best[start + 1 :]] for other in choices[1:]]
    found = [model.alternative(orders) for orders in plans]
    if len(streams) > 2:
        found.append(model.tree(best))
    most = max(one.output_rate for one in found)
    return sorted(
        found,
        key=lambda one: (
            one.kind == "tree",  # which the engine does not run
            -min(one.output_rate, most * (1 - 1e-9)),
            one.cost,
            one.latency,
        ),
    )
