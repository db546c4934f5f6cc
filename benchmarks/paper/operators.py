"""Rate and cost of selections, projections and joins, and of plans made of them.

Liu, Plale 2006, "Query Optimization for Distributed Data Streams", tables 1 and 2.  Rates are
events per unit of time, costs units of time per event (for joins: per pair of events), windows
units of time.  An operator that is offered more than it can do works on what it can: ``1 / cost``.
What plans of this engine cost is not said by these formulas but by ``bindings/plan_model.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import permutations
from typing import Literal

EQUALS = 1e-9  # rates and costs that differ by a smaller share are equal


def selection_cost(unit: float, share: float, logic: Literal["and", "or", "one"] = "one") -> float:
    """What two conditions joined by ``logic`` cost for an event: table 2.

    ``share``: how often the first one is true; then ``and`` asks the second, and ``or`` does not.

    >>> selection_cost(1.0, 0.25, "and"), selection_cost(1.0, 0.25, "or")
    (1.25, 1.75)
    """
    return unit * {"and": 1 + share, "or": 2 - share, "one": 1.0}[logic]


def projection_cost(unit: float, columns: int) -> float:
    """What it costs to keep so many columns of an event: table 2."""
    return unit * columns


def join_cost(unit: float, selectivity: float, projection: float, columns: int) -> float:
    """What a pair of events costs that is compared, and put together if it matches: table 2."""
    return unit + selectivity * projection_cost(projection, columns)


@dataclass(frozen=True, slots=True)
class Operator:
    """A node of a plan: where its input comes from, what it costs, what it lets pass."""

    name: str
    inputs: tuple[Operator, ...] = ()
    rate: float = 0.0  # of a source
    selectivity: float = 1.0
    cost: float = 0.0
    window: float = 0.0  # of a join

    @property
    def kind(self) -> Literal["source", "step", "join"]:
        """What it is by the number of its inputs."""
        kinds: tuple[Literal["source", "step", "join"], ...] = ("source", "step", "join")
        return kinds[len(self.inputs)]


def source(name: str, rate: float) -> Operator:
    """A stream of ``rate`` events per unit of time."""
    return Operator(name, rate=_at_least_0(f"rate of {name!r}", rate))


def selection(of: Operator, name: str, selectivity: float, cost: float) -> Operator:
    """Keeps the share ``selectivity`` of events; costs ``cost`` for each."""
    _at_least_0(f"selectivity of {name!r}", selectivity)
    return Operator(
        name, (of,), selectivity=selectivity, cost=_at_least_0(f"cost of {name!r}", cost)
    )


def projection(of: Operator, name: str, cost: float) -> Operator:
    """Keeps all events, some of their columns."""
    return Operator(name, (of,), cost=_at_least_0(f"cost of {name!r}", cost))


def window_join(
    left: Operator, right: Operator, name: str, window: float, selectivity: float, cost: float
) -> Operator:
    """Pairs of events that are at most ``window`` apart, of which ``selectivity`` match."""
    for what, value in (("window", window), ("selectivity", selectivity), ("cost", cost)):
        _at_least_0(f"{what} of {name!r}", value)
    return Operator(name, (left, right), 0.0, selectivity, cost, window)


def _at_least_0(what: str, value: float) -> float:
    if not value >= 0:
        raise ValueError(f"{what} is {value}; it must be >= 0")
    return value


@dataclass(frozen=True, slots=True)
class Flow:
    """What an operator is offered, what it works on, and what leaves it."""

    operator: Operator
    offered: float
    worked: float
    output: float
    cost: float  # of it alone: units of time per unit of time

    @property
    def saturated(self) -> bool:
        """Whether it is offered more than it can do."""
        return self.worked < self.offered * (1 - EQUALS)


def flows(plan: Operator) -> Iterator[Flow]:
    """Of every operator, inputs before what they go into; the last one is the plan's own."""
    outputs = []
    for below in plan.inputs:
        *rest, last = flows(below)
        yield from (*rest, last)
        outputs.append(last.output)
    if plan.kind == "source":
        yield Flow(plan, plan.rate, plan.rate, plan.rate, 0.0)
        return
    offered = outputs[0] if plan.kind == "step" else 2 * outputs[0] * outputs[1] * plan.window
    worked = min(offered, 1 / plan.cost) if plan.cost else offered
    yield Flow(plan, offered, worked, worked * plan.selectivity, worked * plan.cost)


def output_rate(plan: Operator) -> float:
    """Events per unit of time that leave a plan."""
    return list(flows(plan))[-1].output


def cost(plan: Operator) -> float:
    """Units of time per unit of time, of all operators together."""
    return sum(flow.cost for flow in flows(plan))


def completeness(plan: Operator) -> float:
    """The share of its events that leave a plan: of an unlimited machine all do.

    >>> fast = source("s", rate=1.0)
    >>> completeness(selection(fast, "S", selectivity=0.5, cost=0.5))
    1.0
    >>> completeness(selection(fast, "S", selectivity=0.5, cost=4.0))
    0.25
    """
    whole = output_rate(_without_cost(plan))
    return output_rate(plan) / whole if whole else 1.0


def _without_cost(plan: Operator) -> Operator:
    return replace(plan, inputs=tuple(map(_without_cost, plan.inputs)), cost=0.0)


def best(plans: Iterable[Operator]) -> Operator:
    """Among the plans with the greatest output rate the one of least cost (section 2.1)."""
    return min(ranked(plans))[1]


def ranked(plans: Iterable[Operator]) -> list[tuple[tuple[float, float, int], Operator]]:
    """Plans with what they are compared by, best first."""
    measured = [(output_rate(plan), cost(plan), number, plan) for number, plan in enumerate(plans)]
    if not measured:
        raise ValueError("there is no plan to choose from")
    most = max(rate for rate, *_ in measured)
    keyed = [
        ((-(rate if rate < most * (1 - EQUALS) else most), spent, number), plan)
        for rate, spent, number, plan in measured
    ]
    return sorted(keyed, key=lambda one: one[0])


@dataclass(frozen=True, slots=True)
class UnaryOperator:
    """A selection or projection that may be done anywhere above the stream it is of."""

    name: str
    cost: float
    selectivity: float = 1.0


def rewrites(
    streams: Sequence[tuple[str, float]],
    steps: Sequence[Sequence[UnaryOperator]],
    window: float,
    selectivity: float,
    cost: float,
) -> Iterator[Operator]:
    """Every plan of a join of two streams: each step before the join or after it, in any order."""
    first, second = steps
    for split in _splits(first, second):
        before, after = split
        for orders in _orders(before):
            inputs = [
                reduce(_apply, chain, source(*stream))
                for stream, chain in zip(streams, orders, strict=True)
            ]
            joined = window_join(inputs[0], inputs[1], "J", window, selectivity, cost)
            for chain in permutations(after):
                yield reduce(_apply, chain, joined)


def _apply(below: Operator, step: UnaryOperator) -> Operator:
    return selection(below, step.name, step.selectivity, step.cost)


def _splits(
    first: Sequence[UnaryOperator], second: Sequence[UnaryOperator]
) -> Iterator[tuple[tuple[list[UnaryOperator], list[UnaryOperator]], list[UnaryOperator]]]:
    together = [(0, step) for step in first] + [(1, step) for step in second]
    for mask in range(1 << len(together)):
        before: tuple[list[UnaryOperator], list[UnaryOperator]] = ([], [])
        after: list[UnaryOperator] = []
        for bit, (side, step) in enumerate(together):
            (after if mask >> bit & 1 else before[side]).append(step)
        yield before, after


def _orders(
    before: tuple[list[UnaryOperator], list[UnaryOperator]],
) -> Iterator[tuple[tuple[UnaryOperator, ...], tuple[UnaryOperator, ...]]]:
    for left in permutations(before[0]):
        for right in permutations(before[1]):
            yield left, right
