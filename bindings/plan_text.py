"""A plan as text for people, and as plain data for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from windjoin.figures import figure, percent, size

if TYPE_CHECKING:
    from windjoin.plan_model import Alternative, PlannedHop
    from windjoin.planner import Plan

SHOWN = 3  # alternatives beside the plan


def as_data(plan: Plan) -> dict[str, Any]:
    """The plan as dictionaries, lists, texts and numbers."""
    return {
        "rates": dict(plan.rates),
        "assumed": plan.assumed,
        "cpu": plan.cpu,
        "output_rate": plan.output_rate,
        "completeness": plan.completeness,
        "cost": plan.cost,
        "latency": plan.latency,
        "batch": asdict(plan.batch) | {"threads": plan.batch.threads},
        "alternatives": [asdict(one) for one in plan.alternatives],
        "fragments": [
            {
                "name": one.name,
                "site": one.site,
                "reads": [asdict(edge) for edge in one.reads],
                "sends": asdict(one.sends),
            }
            for one in plan.fragments
        ],
    }


def as_text(plan: Plan) -> str:
    """The plan as a tree: rates on its edges, selectivity and cost at its nodes."""
    best = plan.best
    lines = [
        f"{figure(plan.output_rate)} results/s, {percent(plan.completeness)} of all there are,"
        f" for {figure(plan.cost)} of {plan.cpu * best.hosts:g} CPU seconds per second"
    ]
    if plan.assumed:
        lines.append("types and selectivities are assumed; statistics= learns them from samples")
    if best.hosts > 1:
        lines.append(f"on {best.hosts} hosts by {best.strategy}: {best.why}")
    for name, hops in best.hops.items():
        lines.append(f"{name} {figure(plan.rates[name])} rows/s")
        lines += [f"  {hop_text(hop)}" for hop in hops]
    lines += [*_beside(plan), *_on_threads(plan)]
    for one in plan.fragments if len(plan.fragments) > 1 or plan.fragments[0].site else ():
        reads = ", ".join(f"{edge.name} ({size(edge.bytes)}/s)" for edge in one.reads)
        lines.append(
            f"at {one.site}: {reads} -> {one.name}"
            f" ({figure(one.sends.rows)} rows/s, {size(one.sends.bytes)}/s)"
        )
    return "\n".join(lines)


def _beside(plan: Plan) -> list[str]:
    others = [one for one in plan.alternatives[1:] if one.kind == "hops"]
    lines = [f"{len(plan.alternatives)} plans were looked at"]
    for one in others[:SHOWN]:
        lines.append(
            f"  {_orders(one)}: {figure(one.output_rate)} results/s, cost {figure(one.cost)}"
        )
    for one in plan.alternatives:
        if one.kind == "tree":
            compared = one.cost / plan.cost if plan.cost else 1.0
            lines.append(
                f"  joins two by two that keep what they found, {one.orders[''][0]}: would cost"
                f" {figure(compared, 2)} times as much"
            )
    return lines


def _on_threads(plan: Plan) -> list[str]:
    """Whole tables on several threads, if there may be several."""
    batch, others = plan.batch, plan.batch.alternatives
    alone = next(one for one in others if one.threads == 1)
    return [
        f"whole tables, {' -> '.join(batch.order)}, on {one.threads} threads:"
        f" {figure(alone.elapsed / one.elapsed)} times as fast as on one,"
        f" {figure(one.cost / alone.cost)} times its CPU"
        for one in others
        if one is not alone and alone.elapsed
    ]


def _orders(one: Alternative) -> str:
    if one.hosts > 1:
        return f"on {one.hosts} hosts by {one.strategy}"
    return ", ".join(f"{start} -> {' -> '.join(order)}" for start, order in one.orders.items())


def hop_text(hop: PlannedHop) -> str:
    """One hop: through which index, how much comes and goes, and what it costs."""
    return (
        f"-> {hop.stream} through {hop.index}: {figure(hop.asked)}/s ask,"
        f" {figure(hop.kept)}/s leave, selectivity {figure(hop.share)}, cost {figure(hop.cost)}"
    )
