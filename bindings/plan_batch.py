"""What joining whole tables costs: the rows of a long stretch of the streams, at their rates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windjoin import plan_work as work
from windjoin.kernels.order import Order, best_order
from windjoin.plan_model import NANOSECOND, Model, expected
from windjoin.plan_work import StateSize, Work

WINDOWS = 50  # of the longest: how much of the streams is looked at


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """How `Query.run` joins tables of these streams."""

    order: tuple[str, ...]  # streams, the one whose rows ask first
    indexes: tuple[str, ...]
    cost: float  # CPU seconds per second of the streams, on one thread


def batch_plan(model: Model) -> BatchPlan:
    """The order that tables at these rates are joined in, and what it costs."""
    spec = model.spec
    ticks = float(WINDOWS * max(max(stream.window for stream in spec.streams), 1))
    per_tick = model.statistics.rates
    rows = tuple(max(round(rate * ticks), 1) for rate in per_tick)
    statistics = replace(model.statistics, rows=rows)
    order = best_order(spec, statistics)
    names = [model.names[stream] for stream in order.streams]
    seconds = ticks / model.ticks
    cost = _nanoseconds(model, order, rows, seconds) * NANOSECOND / seconds
    return BatchPlan(tuple(names), tuple(step.access.name for step in order.steps), cost)


def _nanoseconds(model: Model, order: Order, rows: tuple[int, ...], seconds: float) -> float:
    spec, per_tick = model.spec, model.statistics.rates
    met = work.met(spec, order, per_tick)
    fresh = work.fresh_keys(spec, model.statistics, rows, live=False)
    held = StateSize(met, model.widths, tuple(map(float, rows)), fresh)
    results = seconds * sum(map(model.found_from, range(len(rows))))
    total = Work()
    for stream, many in enumerate(rows):
        total.add(work.taken(model.bound, stream, [order], held, model.statistics), float(many))
    names = work.units_of(order, spec, live=False)
    asked = float(rows[order.start])
    for number, (name, step) in enumerate(zip(names, order.steps, strict=True)):
        last = number == len(names) - 1
        kept = results if last else asked * step.results / step.partials if step.partials else 0.0
        counts = expected(step, model.statistics, met[step.stream], asked, kept)
        total.add(work.asked(name, step, counts, held), 1.0)
        asked = kept
    total.add(work.given(model.bound), results)
    return model.costs.nanoseconds(total, live=False)
