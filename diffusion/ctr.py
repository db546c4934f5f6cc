"""Coordinated tuple routing: one hop per stream, each to the fewest hosts that hold what is needed.

Gu, Yu, Wang 2007, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", section 4; the
path is a weighted minimum set cover per hop (section 4.1), and where the paper annotates a path so
that no pair is computed twice (section 4, step 3), a hop here has *voids*.

A segment is stored where the first hop of its cheapest path goes, but for hosts whose load is more
than ``crowded`` times the mean, and on the least loaded hosts up to ``copies``, so that state keeps
spreading.  A border takes two passes: all its segments are
placed by what is older, then their paths are found with all of them in the table.  At every hop the
hosts of the hop before are used for free, the rest is covered greedily, and where several hosts of
a hop hold a segment, the least loaded computes it and it is void at the others.

The search itself is compiled (`windjoin.pyx.routing.routes`); this is the policy around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from time import perf_counter_ns
from typing import Any, ClassVar

from windjoin.diffusion.adaptive import AdaptiveRouter
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host, Weights
from windjoin.diffusion.orders import search_space
from windjoin.diffusion.router import Description, Hop, Move, Part, Path, Placement
from windjoin.diffusion.segment_length import HillClimber
from windjoin.diffusion.segments import NEVER, Segment, StreamProfile
from windjoin.pyx.routing.routes import RouteTable

FRESH_HOSTS = 128  # with more, loads are those of the border: a route takes twice as long else
MOST_ROWS = float(1 << 32)  # that one hop counts for, however much is expected to travel


class CTR(AdaptiveRouter):
    """n - 1 hops; every stream is stored in few places and partial results travel.

    >>> from windjoin.diffusion.registry import make
    >>> streams = [StreamProfile("a", window=10), StreamProfile("b", window=20)]
    >>> router = make("ctr", streams, 4, segment_length=10, copies=1, warm_up_copies=1)
    >>> for border in (0, 10):
    ...     moves = router.advance(border)
    ...     for route in router.route([Segment(k, border, border + 10) for k in (0, 1)]):
    ...         print(route.segment.stream, route.placement.hosts, route.path.hops[0].hosts)
    0 (0,) (1,)
    1 (1,) (0,)
    0 (2,) (1, 3)
    1 (3,) (0, 2)
    """

    name: ClassVar[str] = "ctr"

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
        copies: int = 2,
        warm_up_copies: int = 5,
        max_orders: int = 8,
        crowded: float = 1.25,
        adapt: bool = True,
    ) -> None:
        super().__init__(
            profiles, hosts, segment_length=segment_length, weights=weights, adapt=adapt
        )
        for option, value in (
            ("copies", copies),
            ("warm_up_copies", warm_up_copies),
            ("max_orders", max_orders),
        ):
            if value < 1:
                raise RoutingError(f"{option} is {value}; it must be at least 1")
        if not crowded >= 1:
            raise RoutingError(f"crowded is {crowded}; it must be at least 1")
        self.crowded = crowded
        self.copies, self.warm_up_copies, self.max_orders = copies, warm_up_copies, max_orders
        self.table = RouteTable(self.windows, self.book.size)
        self._first_border = NEVER
        self._cost = 0.0  # Gu, Yu, Wang 2007, eq. 3, summed over all paths
        self._nanoseconds = 0
        self._set_orders()
        self._weigh()

    # -- routing -------------------------------------------------------------------------------

    def advance(self, border: int) -> tuple[Move, ...]:
        """Nothing moves: segments stay where they are until they expire."""
        moves = super().advance(border)
        if self._first_border == NEVER:
            self._first_border = border
        self._weigh()
        return moves

    def place(self, segment: Segment) -> Placement:
        """The first hop of the cheapest path through older segments, topped up to ``copies``."""
        began = perf_counter_ns()
        self._check_segment(segment)
        again = self._placed_before(segment)
        if again is not None:
            return again
        stream, start, stop = segment.stream, segment.start, segment.stop
        warming = self.border < self._first_border + self.max_window
        copies = max(self.copies, self.warm_up_copies) if warming else self.copies
        self._weigh_anew(segment.rows)
        hosts = self.table.place(stream, start, stop, copies)
        answer = Placement(tuple(map(Part, hosts, repeat(start), repeat(stop))))
        self.book.assign(hosts, rows=segment.rows + 1, bytes=segment.bytes, due=stop)
        self._count(segment, len(hosts) * (stop - start))
        self._nanoseconds += perf_counter_ns() - began
        return answer

    def path(self, segment: Segment) -> Path:
        """The cheapest path through all segments of the table."""
        began = perf_counter_ns()
        stream, start, stop = segment.stream, segment.start, segment.stop
        stored = self.table.hosts_of(stream, start)
        if stored is None:
            raise RoutingError(
                f"the segment of stream {self.profiles[stream].name!r} that starts at {start} was "
                "not placed, or has expired; call place() first"
            )
        self._weigh_anew(segment.rows)
        hops = []
        found = self.table.path(stream, start, stop)
        partials = self._partials[stream][self.table.order]
        for (probed, hosts, voids), per_row in zip(found, partials, strict=True):
            hops.append(Hop((probed,), hosts, voids))
            self.counters.visits += len(hosts)
            rows = int(min(segment.rows * per_row, MOST_ROWS))  # that each of them probes with
            self.book.assign(hosts, rows=rows, bytes=0, due=stop)
        self._cost += (len(stored) - 1 + self.table.cost) * segment.rows
        self._nanoseconds += perf_counter_ns() - began
        return Path(tuple(hops))

    def _follow(self, rates: Sequence[float] | None) -> None:
        """Candidate orders go by the rates."""
        if rates is not None:
            self._set_orders()

    def learn(self, shares: Sequence[Sequence[float]]) -> None:
        """Candidate orders go by the selectivities too."""
        super().learn(shares)
        self._set_orders()

    def expire(self, watermark: int) -> None:
        """Delete the entries that no window can reach any more."""
        super().expire(watermark)
        self.table.expire(self.watermark)

    # -- hosts ---------------------------------------------------------------------------------

    def add_host(self, host: Host) -> tuple[Move, ...]:
        """From the next border on it is topped up with, being the least loaded."""
        moves = super().add_host(host)
        self.table.grow_hosts(self.book.size)
        self._weigh()
        return moves

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        """Planned: probed as long as it holds something.  Lost: only last copies are restored."""
        super().remove_host(number, lost=lost)
        moves = []
        if lost:
            for stream, start, stop in self.table.drop_host(number):
                target = self.book.least_loaded(1)[0]
                self.book.assign([target], rows=1, bytes=0, due=self.border)
                self.table.give(stream, start, target)
                moves.append(Move(stream, start, stop, None, target))
        self.counters.moves += len(moves)
        self._weigh()
        return tuple(moves)

    # -- about itself --------------------------------------------------------------------------

    def describe(self) -> Description:
        """Table size, time per route, and equation 3 per time unit, as measured on its paths."""
        elapsed = max(1, self.border - self._first_border + self.segment_length)
        segments = max(1, self.counters.segments)
        return Description(
            self.name,
            self.exact,
            tuple(host.number for host in self.book.hosts),
            entries=self.table.entries(),
            state_bytes=self.table.nbytes(),
            counters=self.counters,
            expected_overhead=self._cost / elapsed if self._first_border > NEVER else 0.0,
            details={
                "segment_length": self.segment_length,
                "copies": self.copies,
                "microseconds_per_route": self._nanoseconds / segments / 1000,
            },
        )

    def state(self) -> dict[str, Any]:
        """The routing table and the little around it."""
        return super().state() | {
            "table": self.table.dump(),
            "random": self.table.random,
            "first_border": self._first_border,
            "climber": self._climber.state(),
            "cost": self._cost,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """The way back from `state`."""
        super().restore(state)
        self.table = RouteTable(self.windows, self.book.size, state["random"])
        for stream, segments in enumerate(state["table"]):
            for start, stop, hosts in segments:
                self.table.add(stream, start, stop, hosts)
        self._first_border = state["first_border"]
        self._climber = HillClimber.from_state(state["climber"])
        self._cost = state["cost"]
        self._set_orders()
        self._weigh()

    # -- helpers -------------------------------------------------------------------------------

    def _set_orders(self) -> None:
        orders, factors = search_space(self.profiles, at_most=self.max_orders)
        self.table.set_orders(orders, factors)
        self._partials = factors.tolist()  # by stream and order: sent to each host of a hop

    def _weigh(self, rows: int = 0) -> None:
        """``rows``: of the segment that is routed, which takes slower hosts longer."""
        most = max(self.copies, self.warm_up_copies)
        self.table.begin(self.book.loads(rows), self.book.open_hosts, self.crowded, most)

    def _weigh_anew(self, rows: int) -> None:
        """Between the segments of a border: by old loads all of them go to the same few hosts."""
        if self.book.size <= FRESH_HOSTS:
            self._weigh(rows)

    def _placed_before(self, segment: Segment) -> Placement | None:
        """The answer of an earlier border; None if the segment is new."""
        stream, start, stop = segment.stream, segment.start, segment.stop
        last = self.table.last_start(stream)
        if last is None or last < start:
            return None
        hosts = self.table.hosts_of(stream, start)
        if hosts is None:
            raise RoutingError(
                f"the segment of stream {self.profiles[stream].name!r} that starts at {start} "
                f"comes after one that starts at {last}"
            )
        return Placement(tuple(map(Part, hosts, repeat(start), repeat(stop))))

    def _holds_work(self, number: int) -> bool:
        return self.table.holds(number)
