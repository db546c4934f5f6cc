"""What a plan of a continuous query gives and takes at given rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from windjoin import plan_work as work
from windjoin.binding import BoundQuery
from windjoin.kernels.order import KeyClasses, Order, OrderHop
from windjoin.kernels.spec import Equal, JoinSpec, Predicate
from windjoin.kernels.statistics import DERIVED_SHARE, Statistics
from windjoin.plan_work import HopCounts, StateSize, Work
from windjoin.unit_costs import UnitCosts

NANOSECOND = 1e-9
Widths = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class PlannedHop:
    """One hop of a row's way, per second."""

    stream: str
    index: str
    asked: float  # partial results per second that ask
    kept: float  # and that leave
    share: float  # of the rows in the window that a partial result is kept with
    cost: float  # CPU seconds per second


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan with its rate and cost."""

    kind: str  # "hops": as this engine runs; "tree": joins two by two that keep what they found
    orders: dict[str, tuple[str, ...]]  # for rows of each stream, which others they meet, in turn
    hops: dict[str, tuple[PlannedHop, ...]]
    output_rate: float
    completeness: float
    cost: float
    latency: float
    hosts: int = 1
    strategy: str | None = None  # how several hosts share the work
    segment: float | None = None  # seconds that are routed as one
    why: str = ""

    @property
    def saturated(self) -> bool:
        """Whether not all rows can be joined."""
        return self.completeness < 1.0


@dataclass(frozen=True, slots=True)
class Spread:
    """What it takes to share work among hosts, and what they can do together."""

    hosts: int = 1
    strategy: str | None = None
    segment: float | None = None
    overhead: float = 0.0  # CPU seconds per second that one host alone would not have
    parallel: float = 1.0  # hosts that work at a time
    hops: int = 1  # times that a row waits for a host
    why: str = ""


ALONE = Spread()


@dataclass(frozen=True)
class Model:
    """Rates and costs of one query on one machine."""

    bound: BoundQuery
    statistics: Statistics
    widths: Widths
    rates: Mapping[str, float]
    passing: tuple[float, ...]  # share of the rows of each stream that its own filters let pass
    cpu: float
    batch_rows: int
    costs: UnitCosts
    _held: StateSize = field(init=False)

    def __post_init__(self) -> None:
        rows = tuple(map(float, self.statistics.rows))
        fresh = work.fresh_keys(self.spec, self.statistics, rows, live=True)
        object.__setattr__(self, "_held", StateSize(rows, self.widths, rows, fresh))

    @property
    def spec(self) -> JoinSpec:
        """The query as kernels see it."""
        return self.bound.spec

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams."""
        return self.bound.query.names

    def joined_rate(self, stream: int) -> float:
        """Rows of a stream per second that can be in a result."""
        return self.rates[self.names[stream]] * self.passing[stream]

    @property
    def ticks(self) -> float:
        """Of the kernels' clock, in a second."""
        step = self.bound.clock.step
        return 1.0 if step is None else float(1 / step)

    def alternative(self, orders: Sequence[Order], spread: Spread = ALONE) -> Alternative:
        """The plan in which rows of every stream go their order of hops."""
        hops = {self.names[order.start]: self._hops(order) for order in orders}
        results = sum(one[-1].kept for one in hops.values())
        taken = spread.overhead + sum(
            self._taken(stream, orders) for stream in range(len(self.names))
        )
        given = self._seconds(work.given(self.bound), results)
        cost = taken + given + sum(hop.cost for one in hops.values() for hop in one)
        share = self._share(taken, given, list(hops.values()), self.cpu * spread.parallel)
        completeness = share ** (len(self.names) * spread.hops) if share < 1 else 1.0
        arriving = sum(self.rates.values())
        return Alternative(
            "hops",
            {name: tuple(hop.stream for hop in one) for name, one in hops.items()},
            hops,
            results * completeness,
            completeness,
            cost,
            cost / arriving if arriving else 0.0,
            spread.hosts,
            spread.strategy,
            spread.segment,
            spread.why,
        )

    # -- hops -----------------------------------------------------------------------------

    def _hops(self, order: Order) -> tuple[PlannedHop, ...]:
        asked = self.joined_rate(order.start)
        names = work.units_of(order, self.spec, live=True)
        found = []
        for number, (name, step) in enumerate(zip(names, order.steps, strict=True)):
            each = step.results / step.partials if step.partials else 0.0
            rows = self._held.rows[step.stream]
            kept = asked * each
            if number == len(names) - 1:
                # how much is found does not depend on the order, whatever its hops expect
                kept = self.found_from(order.start)
                each = kept / asked if asked else 0.0
            done = work.asked(name, step, self._counts(step, asked, kept), self._among(order))
            found.append(
                PlannedHop(
                    self.names[step.stream],
                    step.access.name,
                    asked,
                    kept,
                    each / rows if rows else 0.0,
                    self._seconds(done),
                )
            )
            asked = kept
        return tuple(found)

    def found_from(self, start: int) -> float:
        """Results per second whose latest member is of a stream."""
        found = self.joined_rate(start) * self.share_of(self.spec.predicates)
        for stream, rows in enumerate(self.statistics.rows):
            found *= 1.0 if stream == start else rows
        return found

    def _among(self, order: Order) -> StateSize:
        """What is held, and how many rows of each stream ask at a time, over a second."""
        start = self.joined_rate(order.start)
        pushes = start / self.batch_rows
        together = tuple(
            start if stream == order.start else max(pushes * rows, rows)
            for stream, rows in enumerate(self._held.rows)
        )
        return replace(self._held, together=together)

    def _counts(self, step: OrderHop, asked: float, kept: float) -> HopCounts:
        """What a hop is expected to look at when so many partial results ask."""
        return expected(step, self.statistics, self._held.rows[step.stream], asked, kept)

    def _taken(self, stream: int, orders: Sequence[Order]) -> float:
        """CPU seconds per second for taking and keeping the rows of a stream."""
        done = Work({"push": 1.0 / self.batch_rows})
        done.add(work.taken(self.bound, stream, orders, self._held, self.statistics))
        done.add(work.kept(self.bound, stream))
        return self._seconds(done, self.rates[self.names[stream]])

    def _seconds(self, done: Work, times: float = 1.0) -> float:
        return self.costs.nanoseconds(done, live=True) * times * NANOSECOND

    def _share(
        self,
        taken: float,
        given: float,
        hops: Sequence[tuple[PlannedHop, ...]],
        capacity: float,
    ) -> float:
        """The share of the rows that can be taken, the rest being lost before it is looked at.

        Of taken rows alone the k-th hop costs by the k-th power of that share.
        """

        def needed(share: float) -> float:
            total = taken * share + given * share ** len(self.names)
            for one in hops:
                total += sum(hop.cost * share ** (k + 1) for k, hop in enumerate(one))
            return total

        if needed(1.0) <= capacity:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if needed(middle) <= capacity else (low, middle)
        return low

    def share_of(self, predicates: Sequence[Predicate]) -> float:
        """Share of combinations that pass; an equality that follows from others says nothing."""
        known = KeyClasses()
        return self.statistics.share_of(
            p for p in predicates if not isinstance(p, Equal) or known.unite(p.left, p.right)
        )


def expected(
    step: OrderHop, statistics: Statistics, rows: float, asked: float, kept: float
) -> HopCounts:
    """What a hop looks at if ``asked`` partial results ask about ``rows`` each."""
    proposed = step.access.candidates
    if step.access.covers:
        proposed = min(proposed, rows * statistics.share_of(step.access.covers))
    came = asked * max(proposed, kept / asked if asked else 0.0)
    seen, left = [], came
    shares = [1.0] * len(step.distinct) + [DERIVED_SHARE] * len(step.implied)
    for share in (*shares, *map(statistics.share, step.filters)):
        seen.append(left)
        left *= share
    compared = _compared(step, statistics, rows, asked, came)
    return HopCounts(asked, came, kept, tuple(seen), compared)


def _compared(
    step: OrderHop, statistics: Statistics, rows: float, asked: float, came: float
) -> float:
    """Pairs that are read: those that a sample's bounds left open, else all that come."""
    known = [statistics.compared.get(p.place) for p in step.access.covers]
    return came if len(known) != 1 or known[0] is None else asked * rows * known[0]
