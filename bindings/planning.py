"""How `windjoin.plan` finds a plan: all orders of hops, each with its rate and its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windjoin.assumed import assumed_schemas, assumed_widths
from windjoin.binding import BoundQuery
from windjoin.dividing import divided, whole
from windjoin.errors import QueryError
from windjoin.fragments import Site
from windjoin.inputs import as_table
from windjoin.kernels.batch import statistics_of
from windjoin.kernels.enumeration import every_order, through_others
from windjoin.kernels.order import Order
from windjoin.kernels.statistics import Statistics
from windjoin.plan_batch import batch_plan
from windjoin.plan_hosts import spreads
from windjoin.plan_model import Alternative, Model, Widths
from windjoin.plan_sampling import with_seen
from windjoin.plan_trees import tree_plan
from windjoin.plan_work import widths_of
from windjoin.planner import Plan
from windjoin.query import Query
from windjoin.sizes import lengths_of
from windjoin.unit_costs import unit_costs

MOST_ALTERNATIVES = 200
FILTERED = 0.5  # of the rows that a filter on their stream is taken to let pass


def at_rates(
    bound: BoundQuery,
    seen: Statistics | None,
    rates: Mapping[str, float],
    passing: Sequence[float],
) -> Statistics:
    """Statistics of live windows at these rates, in rows and ticks."""
    ticks = 1.0 if bound.clock.step is None else float(1 / bound.clock.step)
    per_tick = tuple(
        rates[name] * share / ticks for name, share in zip(bound.query.names, passing, strict=True)
    )
    held = tuple(
        max(round(rate * stream.window), 1)
        for rate, stream in zip(per_tick, bound.spec.streams, strict=True)
    )
    if seen is None:
        return Statistics(held, per_tick, {})
    return replace(seen, rows=held, rates=per_tick)


@dataclass(frozen=True)
class Learned:
    """What is known of a query before it runs: from samples, or assumed."""

    bound: BoundQuery
    seen: Statistics | None
    widths: Widths
    passing: tuple[float, ...]

    def at(self, rates: Mapping[str, float]) -> Statistics:
        """Statistics of live windows at these rates."""
        return at_rates(self.bound, self.seen, rates, self.passing)

    def model(self, rates: Mapping[str, float], cpu: float, batch_rows: int) -> Model:
        """What plans give and take at these rates."""
        return Model(
            self.bound, self.at(rates), self.widths, rates, self.passing, cpu, batch_rows,
            unit_costs(),
        )  # fmt: skip


def planned(
    query: Query,
    rates: dict[str, float],
    statistics: Mapping[str, Any] | None,
    cpu: float,
    batch_rows: int,
    sites: Mapping[str, Site] | None,
    links: Mapping[tuple[str, str], float | str] | None,
    weights: tuple[float, float],
    hosts: int = 1,
    threads: int = 1,
) -> Plan:
    """The plan of a query, as `windjoin.plan` is asked for it."""
    known = _assumed(query) if statistics is None else learned(query, statistics)
    model = known.model(rates, cpu, batch_rows)
    alternatives = tuple(_alternatives(model, hosts)[:MOST_ALTERNATIVES])
    assumed = statistics is None
    fragments = (
        whole(query, model, alternatives[0], assumed)
        if sites is None
        else divided(query, model, alternatives[0], sites, lengths_of(links), weights, assumed)
    )
    return Plan(
        query, rates, alternatives, fragments, assumed, cpu, known.bound.schemas,
        batch_plan(model, threads), known.seen, known.passing,
    )  # fmt: skip


def _assumed(query: Query) -> Learned:
    bound = query.bind(assumed_schemas(query))
    passing = tuple(FILTERED ** len(stream.conditions) for stream in query.streams)
    return Learned(bound, None, assumed_widths(bound), passing)


def learned(query: Query, tables: Mapping[str, Any]) -> Learned:
    """The query bound to the schemas of some tables, and what these say of it."""
    missing = [name for name in query.names if name not in tables]
    if missing:
        raise QueryError(f"statistics: there is no table of stream {missing[0]!r}")
    read = [as_table(tables[name], name) for name in query.names]
    bound = query.bind({name: t.schema for name, t in zip(query.names, read, strict=True)})
    rows = [bound.prepare(number, table).rows for number, table in enumerate(read)]
    passing = tuple(
        1.0 if one.usable is None or not len(one) else float(one.usable.mean()) for one in rows
    )
    seen = with_seen(bound, read, rows, statistics_of(bound.spec, rows))
    return Learned(bound, seen, widths_of(rows), passing)


def _alternatives(model: Model, hosts: int) -> list[Alternative]:
    """Every plan that was looked at, best first: each stream's orders beside the best of others."""
    streams = range(len(model.spec.streams))
    orders = [every_order(model.spec, model.statistics, start) for start in streams]
    best = [choices[0] for choices in orders]
    plans: list[Sequence[Order]] = [best]
    for start, choices in enumerate(orders):
        others = [*choices[1:], *through_others(model.spec, model.statistics, choices[0])]
        plans += [[*best[:start], other, *best[start + 1 :]] for other in others]
    found = [model.alternative(orders) for orders in plans]
    if hosts > 1:
        cheapest = min(range(len(found)), key=lambda at: found[at].cost)
        found += [
            model.alternative(plans[cheapest], spread)
            for spread in spreads(model, found[cheapest], hosts)
        ]
    if len(streams) > 2:
        found.append(tree_plan(model))
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
