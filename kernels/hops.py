"""From an order of streams to the compiled pipeline that carries it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windjoin.kernels.comparison import (
    CompareFilter,
    as_code_filter,
    as_filter,
    keys_filter,
    rows_differ,
)
from windjoin.kernels.functions import compiled_mask
from windjoin.kernels.order import Order, OrderHop
from windjoin.kernels.raised import Look
from windjoin.kernels.side import Side
from windjoin.kernels.similarity import as_measure_filter
from windjoin.kernels.spec import (
    I64,
    Between,
    Compare,
    Equal,
    Function,
    InRowWindow,
    JoinSpec,
    NotEqual,
    Opaque,
    Predicate,
    Similarity,
)
from windjoin.pyx.base.index import Index
from windjoin.pyx.probing.pipeline import Pipeline

BLOCK_ROWS = (
    4096  # partial results a hop handles at a time: its arrays stay in the second-level cache
)


def pipeline(
    spec: JoinSpec,
    order: Order,
    sides: Sequence[Side],
    numbers: Sequence[I64 | None] | None = None,
    limited: Callable[[OrderHop, Side, Index], Index] | None = None,
) -> Pipeline:
    """The compiled hops of ``order`` over ``sides`` and their indexes.

    numbers: as users count the rows of each stream, where that is not as the sides do
    limited: what is asked in place of the index of a step
    """
    start = sides[order.start]
    made = Pipeline(order.start, start.time_view, start.spec.window, BLOCK_ROWS)
    made.on_raised = Look(spec, sides, numbers or [None] * len(sides))
    for step in order.steps:
        _add_hop(made, step, sides, limited)
    return made


def pipeline_of_latest(
    spec: JoinSpec,
    order: Order,
    bound: Sequence[int],
    sides: Sequence[Side],
    limited: Callable[[OrderHop, Side, Index], Index] | None = None,
) -> Pipeline:
    """The same from partial results over ``bound``, where the row of ``bound[0]`` is the latest.

    It is the latest in the total order ``(time, stream, arrival)``: only rows of streams with a
    lower number may have its time.  Its times and rows come in with `Pipeline.run_partials`.
    """
    latest = bound[0]
    made = Pipeline(latest, sides[latest].time_view, 0, BLOCK_ROWS)
    if len(bound) + len(order.steps) == len(sides):  # else others have still to be asked
        made.on_raised = Look(spec, sides, [None] * len(sides))
    for stream in bound[1:]:
        made.bind(stream)
    for step in order.steps:
        times = sides[step.stream].time_view
        _add_hop(made, step, sides, limited, before=step.stream > latest, time=times)
    return made


def _add_hop(
    made: Pipeline,
    step: OrderHop,
    sides: Sequence[Side],
    limited: Callable[[OrderHop, Side, Index], Index] | None,
    **more: Any,
) -> None:
    """The index of a step, or what is asked in its place, with the filters it leaves over."""
    side = sides[step.stream]
    index = side.indexes[step.access.identity]
    made.add_hop(
        step.stream,
        side.spec.window,
        index if limited is None else limited(step, side, index),
        filters=step_filters(step, sides),
        **more,
        **step.access.ask(sides),
    )


def step_filters(step: OrderHop, sides: Sequence[Side]) -> list[tuple[Any, ...]]:
    """Filters of a hop as the pipeline takes them: the cheap ones first."""
    filters: list[tuple[Any, ...]] = [rows_differ(b, step.stream, sides) for b in step.distinct]
    filters += [keys_filter(bound, own, "== code", sides) for bound, own in step.implied]
    filters += [lower(p, step.stream, sides) for p in step.filters]
    return filters


def lower(predicate: Predicate, target: int, sides: Sequence[Side]) -> tuple[Any, ...]:
    """One predicate as a filter of the pipeline."""
    return FILTERS[type(predicate)](predicate, target, sides)


def _row_window_filter(p: InRowWindow, target: int, sides: Sequence[Side]) -> CompareFilter:
    return as_filter(Compare(p.left, "<=", p.right, "int64"), target, sides)


def _function_filter(p: Function, target: int, sides: Sequence[Side]) -> tuple[Any, ...]:
    operands = [(o.stream, sides[o.stream].view(o.column)) for o in p.operands]
    return ("function", compiled_mask(p), operands)


def _callback_filter(p: Opaque, target: int, sides: Sequence[Side]) -> tuple[Any, ...]:
    return ("callback", p.evaluate, p.streams)


# how a predicate of each kind is tested on candidates; a new kind has a line here
FILTERS: dict[type[Predicate], Callable[[Any, int, Sequence[Side]], tuple[Any, ...]]] = {
    Equal: as_code_filter,
    NotEqual: as_code_filter,
    Compare: as_filter,
    Between: as_filter,
    InRowWindow: _row_window_filter,
    Function: _function_filter,
    Similarity: as_measure_filter,
    Opaque: _callback_filter,
}
