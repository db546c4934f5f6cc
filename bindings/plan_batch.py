"""What joining whole tables costs: the rows of a long stretch of the streams, at their rates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windjoin import plan_work as work
from windjoin.kernels.order import Order, best_order
from windjoin.plan_model import NANOSECOND, Model, expected
from windjoin.plan_work import StateSize, Work

WINDOWS = 50  # of the longest: how much of the streams is looked at
ALONE = 0.2  # of the joining is done by one thread after the other, and all of it takes
SHARING = 0.1  # more on several: as W1 to W5 did on two (`benchmarks/plan_threads.py`)
READY = ("row", "operand", "varlen", "varlen number")  # units of making rows ready


@dataclass(frozen=True, slots=True)
class ThreadPlan:
    """So many threads for whole tables; seconds are per second of the streams."""

    threads: int
    cost: float  # CPU seconds, of all threads
    elapsed: float  # seconds until the results are there


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """How `Query.run` joins tables of these streams."""

    order: tuple[str, ...]  # streams, the one whose rows ask first
    indexes: tuple[str, ...]
    cost: float  # CPU seconds per second of the streams, on one thread
    alternatives: tuple[ThreadPlan, ...]  # by numbers of threads, the fastest first

    @property
    def threads(self) -> int:
        """How many threads are the fastest, of as many as there may be.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window="10s") for name in "ab")
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> plan = wj.plan(q, rates={"a": 1000, "b": 1000}, threads=4)
        >>> plan.batch.threads, sorted(one.threads for one in plan.batch.alternatives)
        (4, [1, 2, 4])
        """
        return self.alternatives[0].threads


def batch_plan(model: Model, most: int = 1) -> BatchPlan:
    """The order that tables at these rates are joined in, what it costs, and how many threads of
    ``most`` are the fastest.
    """
    spec = model.spec
    ticks = float(WINDOWS * max(max(stream.window for stream in spec.streams), 1))
    per_tick = model.statistics.rates
    rows = tuple(max(round(rate * ticks), 1) for rate in per_tick)
    statistics = replace(model.statistics, rows=rows)
    order = best_order(spec, statistics)
    names = [model.names[stream] for stream in order.streams]
    seconds = ticks / model.ticks
    ready, joined = (
        model.costs.nanoseconds(work, live=False) * NANOSECOND / seconds
        for work in _work(model, order, rows, seconds)
    )
    counts = {min(2**power, most) for power in range(most.bit_length() + 1)}
    shared = [_shared(ready, joined, count, len(rows)) for count in counts]
    return BatchPlan(
        tuple(names),
        tuple(step.access.name for step in order.steps),
        ready + joined,
        tuple(sorted(shared, key=lambda one: (one.elapsed, one.cost))),
    )


def _shared(ready: float, joined: float, threads: int, streams: int) -> ThreadPlan:
    """Rows are made ready by a thread for each stream; parts of them are joined by all threads.

    Each part but the first takes rows of a window before it once more.
    """
    if threads > 1:
        joined *= 1 + SHARING + (threads - 1) / WINDOWS
    elapsed = ready / min(threads, streams) + joined * (ALONE + (1 - ALONE) / threads)
    return ThreadPlan(threads, ready + joined, elapsed)


def _work(model: Model, order: Order, rows: tuple[int, ...], seconds: float) -> tuple[Work, Work]:
    """What is done to make rows ready, and to join them."""
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
    ready = Work({unit: total.pop(unit) for unit in READY if unit in total})
    return ready, total
