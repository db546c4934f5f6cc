"""What a continuous join makes of the rows it has seen: other orders and indexes, if they pay.

It looks after FIRST_LOOK rows and then whenever there are four times as many, at least every
FARTHEST rows, so that looking costs next to nothing per row however long the join runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from windjoin.kernels.order import Order, best_order, cost_of
from windjoin.kernels.similarity import with_sampled
from windjoin.kernels.spec import JoinSpec, Rows
from windjoin.kernels.statistics import SAMPLE_ROWS, Statistics, measure
from windjoin.kernels.window import LONG_AGO, Window

FIRST_LOOK = 4096  # rows of all streams
FARTHEST = 1 << 20
LEAST_ROWS = 64  # of every window; a stream that has hardly begun says nothing
WORTHWHILE = 0.7  # expected cost of new orders over that of those in use


def next_look(rows: int) -> int:
    """After how many rows to look again."""
    return min(4 * rows, rows + FARTHEST)


def seen(spec: JoinSpec, windows: Sequence[Window]) -> Statistics:
    """Statistics of the rows that the windows hold now."""
    samples, rates, varlen = [], [], []
    for window in windows:
        count = min(len(window), SAMPLE_ROWS)
        rows = np.linspace(window.head, max(window.tail - 1, 0), count).astype(np.int64)
        stored = window.stored(rows)
        usable = np.flatnonzero(stored.time != LONG_AGO)
        stored = stored.take(usable)
        codes = [codes.astype(np.int64) for codes in stored.codes]
        varlen.append(stored.varlen)
        samples.append(Rows(stored.time, list(stored.columns), list(codes)))
        span = int(stored.time.max()) - int(stored.time.min()) if len(usable) else 0
        rates.append(len(window) * len(usable) / max(count, 1) / max(span, 1))
    sizes = tuple(len(window) for window in windows)
    found = measure(spec, samples)
    return with_sampled(replace(found, rows=sizes, rates=tuple(rates)), spec, varlen)


def better_orders(
    spec: JoinSpec, statistics: Statistics, orders: Sequence[Order]
) -> list[Order] | None:
    """Orders from every stream that are expected to cost clearly less than those in use."""
    if min(statistics.rows) < LEAST_ROWS:
        return None
    found = [best_order(spec, statistics, order.start) for order in orders]
    if all(map(_same_way, found, orders)):
        return None
    used = sum(_per_time(spec, statistics, order) for order in orders)
    new = sum(_per_time(spec, statistics, order) for order in found)
    return found if new < WORTHWHILE * used else None


def _same_way(one: Order, other: Order) -> bool:
    """Whether two orders ask the same indexes and filter alike."""
    return _way(one) == _way(other)


def _way(order: Order) -> list[object]:
    return [(step.access.identity, step.filters, step.implied) for step in order.steps]


def _per_time(spec: JoinSpec, statistics: Statistics, order: Order) -> float:
    """Nanoseconds that rows of the starting stream cost per unit of time."""
    rows = max(statistics.rows[order.start], 1)
    return cost_of(spec, statistics, order) / rows * statistics.rates[order.start]
