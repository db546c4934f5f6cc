"""What a continuous join makes of the rows it has seen: other orders and indexes, if they pay.

It looks after FIRST_LOOK rows and then whenever there are four times as many, at least every
FARTHEST rows, so that looking costs next to nothing per row however long the join runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
SURE = 2.0  # what is saved until the next look over what building indexes takes
SOON = 2  # looks after a change within which another one is a sign of noise
DOUBT = 0.7  # times so much the cost may be then
QUIET = 16  # looks without a change after which a step of that is forgotten
CHANGES_KEPT = 32


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
    found = compared(spec, statistics, orders)
    if found is None or not found.new < WORTHWHILE * found.used:
        return None
    return found.orders


@dataclass(frozen=True, slots=True)
class OrderComparison:
    """Other orders, and nanoseconds per unit of time that those in use and they would take."""

    orders: list[Order]
    used: float
    new: float


def compared(
    spec: JoinSpec, statistics: Statistics, orders: Sequence[Order]
) -> OrderComparison | None:
    """The cheapest orders, if they are other ones and enough rows are there to say so."""
    if min(statistics.rows) < LEAST_ROWS:
        return None
    found = [best_order(spec, statistics, order.start) for order in orders]
    if all(map(_same_way, found, orders)):
        return None
    used = sum(_per_time(spec, statistics, order) for order in orders)
    new = sum(_per_time(spec, statistics, order) for order in found)
    return OrderComparison(found, used, new)


@dataclass(frozen=True, slots=True)
class Replanned:
    """When orders were chosen anew, and what for."""

    rows: int  # that had come
    share: float  # of the cost of those before that the new ones were expected to have


class Replanner:
    """Says when a join goes another way: if that saves more than it costs, and not to and fro.

    Where a change comes soon after the one before, rates or shares are noise, and the next one must
    promise more; after some looks without a change less again.
    """

    def __init__(self, *, pinned: bool = False) -> None:
        self.pinned = pinned
        self.changes: deque[Replanned] = deque(maxlen=CHANGES_KEPT)
        self._looked_at, self._look_at = 0, FIRST_LOOK  # rows that had come, and are to come
        self._asked = WORTHWHILE  # share of the cost in use that other orders may have
        self._quiet = SOON  # looks since the last change

    def due(self, rows: int, unsuited: Callable[[], bool]) -> bool:
        """Whether to look now; ``unsuited``: rows are other than an index was chosen for."""
        if self.pinned:
            return False
        return rows >= self._look_at or (rows > self._looked_at + FIRST_LOOK and unsuited())

    def looked(self, rows: int) -> None:
        """A look was taken."""
        self._looked_at, self._look_at = rows, next_look(rows)

    def better(
        self,
        spec: JoinSpec,
        statistics: Statistics,
        orders: Sequence[Order],
        there: Callable[[Order], float],
        rows: int,
    ) -> list[Order] | None:
        """Orders to take from now on, if any; ``there``: nanoseconds to build what they lack."""
        self.looked(rows)
        self._quiet += 1
        if self._quiet % QUIET == 0:
            self._asked = min(self._asked / DOUBT, WORTHWHILE)
        found = compared(spec, statistics, orders)
        if found is None or not found.new < self._asked * found.used:
            return None
        ahead = (self._look_at - rows) / max(sum(statistics.rates), 1e-300)
        building = sum(map(there, found.orders))
        if not (found.used - found.new) * ahead > SURE * building:
            return None
        if self._quiet <= SOON:
            self._asked *= DOUBT
        self._quiet = 0
        self.changes.append(Replanned(rows, found.new / found.used if found.used else 1.0))
        return found.orders


def _same_way(one: Order, other: Order) -> bool:
    """Whether two orders ask the same indexes and filter alike."""
    return _way(one) == _way(other)


def _way(order: Order) -> list[object]:
    return [(step.access.identity, step.filters, step.implied) for step in order.steps]


def _per_time(spec: JoinSpec, statistics: Statistics, order: Order) -> float:
    """Nanoseconds that rows of the starting stream cost per unit of time."""
    rows = max(statistics.rows[order.start], 1)
    return cost_of(spec, statistics, order) / rows * statistics.rates[order.start]
