"""A session that follows a plan of `windjoin.plan`, and how far what it sees is from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windjoin.errors import QueryError
from windjoin.figures import figure
from windjoin.kernels.order import Order, order_through
from windjoin.kernels.spec import JoinSpec
from windjoin.planner import Plan
from windjoin.tuning import as_tuning

if TYPE_CHECKING:
    from windjoin.binding import BoundQuery
    from windjoin.kernels.live import LiveJoin
    from windjoin.query import Query
    from windjoin.session_state import SessionOptions


def with_plan(query: Query, options: SessionOptions, shed: object) -> SessionOptions:
    """Options as a plan fills them in: hosts, strategy and segment where they are not given."""
    plan = options.plan
    if plan is None:
        if options.pin:
            raise QueryError("pin=True keeps to a plan: give plan=, made by windjoin.plan")
        return options
    if not isinstance(plan, Plan):
        raise QueryError(f"plan={plan!r}: give a plan that windjoin.plan made of this query")
    same = plan.query.names == query.names and repr(plan.query.on) == repr(query.on)
    if plan.query is not query and not same:
        raise QueryError("plan= is of another query; make one of this query with windjoin.plan")
    if shed is not None:
        raise QueryError("plan= is not for shed=: what is left out decides what a session does")
    if query.direction is not None or query.sides.combined(len(query.streams)):
        raise QueryError(
            "plan= is not for direction=, nor for exists= and missing= of which several streams"
            " come out: these are several joins"
        )
    best = plan.best
    if best.kind != "hops":
        raise QueryError(f"plan= is a {best.kind} of joins, which the engine does not run")
    if best.hosts == 1 or options.hosts is not None:
        return options
    filled = replace(options, hosts=best.hosts, strategy=best.strategy or "auto")
    if options.pin:
        tuning = replace(as_tuning(options.tuning, options.weights), adapt=False)
        filled = replace(filled, tuning=tuning, weights=None)
    return filled


def orders_of(plan: Plan, bound: BoundQuery, spec: JoinSpec) -> list[Order]:
    """The orders of a plan, for the types that a session's rows have."""
    from windjoin.planning import at_rates

    statistics = at_rates(bound, plan.seen, plan.rates, plan.passing)
    names = bound.query.names
    return [
        order_through(
            spec,
            statistics,
            start,
            [(names.index(h.stream), h.index) for h in plan.best.hops[name]],
        )
        for start, name in enumerate(names)
    ]


def measured(live: LiveJoin, bound: BoundQuery, pushes: int, plan: Plan | None) -> dict[str, Any]:
    """Rates that the windows show and what the orders in use cost at them; beside the plan's."""
    from windjoin.kernels.replanning import seen
    from windjoin.plan_model import Model
    from windjoin.unit_costs import unit_costs

    statistics = seen(live.spec, live.windows)
    names = bound.query.names
    step = bound.clock.step
    ticks = 1.0 if step is None else float(1 / step)
    rates = {name: rate * ticks for name, rate in zip(names, statistics.rates, strict=True)}
    rows = sum(counts.rows_in for counts in live.counts)
    width = tuple(_width(window) for window in live.windows)
    model = Model(
        bound, statistics, width, rates, (1.0,) * len(names), 1.0,
        max(rows // max(pushes, 1), 1), unit_costs(),
    )  # fmt: skip
    found = model.alternative(live.orders)
    results = found.output_rate / found.completeness if found.completeness else 0.0
    return {
        "rates": rates,
        "cost": found.cost,
        "output_rate": results,
        "planned": None if plan is None else {
            "rates": plan.rates, "cost": plan.cost, "output_rate": plan.output_rate,
        },
        "pinned": live.replanner.pinned,
        "changes": [{"rows": one.rows, "cost": one.share} for one in live.replanner.changes],
    }  # fmt: skip


def _width(window: Any) -> tuple[float, ...]:
    """How long values of wide columns are, on average of the newest rows."""
    rows = range(max(window.head, window.tail - 256), window.tail)
    if not rows:
        return tuple(0.0 for _ in window.spec.varlen)
    import numpy as np

    stored = window.stored(np.array(rows))
    return tuple(float(one.length.mean()) for one in stored.varlen)


def as_lines(data: Mapping[str, Any]) -> list[str]:
    """The same for people.

    >>> as_lines({"rates": {"a": 50.0}, "cost": 0.01, "output_rate": 7.0, "pinned": False,
    ...     "planned": None, "changes": [{"rows": 4096, "cost": 0.5}]})[::2]
    ['rates measured: a 50/s', 'after 4,096 rows for an expected 0.5 of the cost']
    """
    planned = data["planned"]
    rates = ", ".join(
        f"{name} {figure(rate)}/s"
        + (f" (planned {figure(planned['rates'][name])}/s)" if planned else "")
        for name, rate in data["rates"].items()
    )
    cost, results = f"{figure(data['cost'])} CPU seconds per second", figure(data["output_rate"])
    if planned:
        cost += f" (planned {figure(planned['cost'])})"
        results = f"{results} results/s (planned {figure(planned['output_rate'])})"
    else:
        results = f"{results} results/s"
    lines = [f"rates measured: {rates}", f"cost at these rates: {cost}, for {results}"]
    if data["pinned"]:
        lines.append("pinned to the plan: orders and indexes stay")
    lines += [
        f"after {one['rows']:,} rows for an expected {figure(one['cost'], 2)} of the cost"
        for one in data["changes"]
    ]
    return lines
