"""The ring as a router: segments enter at the head and age through the slices of all hosts.

Wang, Rundensteiner 2009, "Scalable Stream Join Processing with Expensive Predicates: Workload
Distribution and Adaptation by Time-Slicing", for a cluster that works in epochs: a segment is
stored at the head, `advance` moves what has aged out of a slice to the hosts that come after, and a
row's path is ``n - 1`` hops over every host of the ring.  A row is at one host at any border, so no
hop needs voids and every combination is completed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import MAX_HOSTS, Host, Usage, Weights
from windjoin.diffusion.ring_order import ring_order_after
from windjoin.diffusion.ring_slices import RingLengths, RowCounts, Spent, costs_of, lengths_of
from windjoin.diffusion.router import Description, Hop, Move, Part, Path, Placement, Router
from windjoin.diffusion.segments import FOREVER, NEVER, Segment, StreamProfile
from windjoin.diffusion.shares import Shares
from windjoin.pyx.routing.aging import AgingRows

RESETS = 8  # per window: how often slices are made even again
SLICE_SEGMENTS = 2  # at least: until a segment ends all of it is at the head


class PSP(Router):
    """Pipelined state slicing: state is never replicated, every row visits every host.

    >>> streams = [StreamProfile("a", window=10), StreamProfile("b", window=10)]
    >>> ring = PSP(streams, [Host(0), Host(1)], segment_length=5)
    >>> ring.advance(0), ring.place(Segment(0, 0, 5)).hosts
    ((), (0,))
    >>> ring.advance(5), ring.path(Segment(0, 5, 10)).hops[0].hosts
    ((), (0, 1))
    >>> ring.advance(10)[0]
    Move(stream=0, start=0, stop=4, source=0, target=1, marks=1, groups=(), keep=False)
    """

    name: ClassVar[str] = "psp"
    passes_on: ClassVar[bool] = True

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
        relocation: str = "aggressive",
        centred: bool = False,
        adapt: bool = True,
        ring_length: int | None = None,
        objective: str = "rate",
        slices: str = "rows",
    ) -> None:
        super().__init__(profiles, hosts, segment_length=segment_length, weights=weights)
        _check("relocation", relocation, ("aggressive", "passive"))
        _check("objective", objective, ("latency", "rate"))
        _check("slices", slices, ("rows", "age"))
        if ring_length is not None and ring_length < 1:
            raise RoutingError(f"ring_length is {ring_length}; it must be at least 1")
        self.relocation, self.objective, self.slices = relocation, objective, slices
        self.centred, self.adapt = centred, adapt
        self.ring_length = ring_length  # as asked for; None: as the cost model says
        self.lengths = RingLengths([ring_length or MAX_HOSTS] * len(self.profiles))
        self.onward = True  # whether the latest moves go away from the head only
        self.shares = Shares({host.number: host.cpu for host in hosts})
        self.order = [host.number for host in hosts]  # head first
        self._counts = [RowCounts() for _ in self.profiles]
        self._sliced_at = NEVER  # the border at which slices were last set
        self._relocating = False  # at the next border rows may go back towards the head as well
        self._rows = [AgingRows(Move) for _ in self.profiles]
        self._paths: dict[int, Path] = {}  # by stream, for the hosts and profiles of `_paths_for`
        self._paths_for: tuple[object, object] = (None, None)
        self._set_slices()

    # -- the router's questions

    def advance(self, border: int) -> tuple[Move, ...]:
        """Pass on what has aged out of each slice, or what a relocation moves."""
        super().advance(border)
        if self.slices == "rows" and border >= self._sliced_at + self.max_window // RESETS:
            self._set_slices()
        self.onward, relocating = not self._relocating, self._relocating
        self._relocating = False
        return self._settle(border, onward=not relocating)

    def place(self, segment: Segment) -> Placement:
        """At the head."""
        self._check_segment(segment)
        head = self.head
        if self._rows[segment.stream].add(head, segment.start, segment.stop):
            self._count(segment, segment.stop - segment.start)
            self._counts[segment.stream].add(segment.start, segment.stop, segment.rows)
            self.book.assign([head], rows=segment.rows, bytes=segment.bytes, due=segment.stop)
        return Placement((Part(head, segment.start, segment.stop),))

    def path(self, segment: Segment) -> Path:
        """All hosts, once for each other stream, smallest expected output first."""
        self._check_segment(segment)
        hosts = self._visited()
        if self._paths_for[0] != hosts or self._paths_for[1] is not self.profiles:
            self._paths, self._paths_for = {}, (hosts, self.profiles)
        path = self._paths.get(segment.stream)
        if path is None:
            path = self._paths[segment.stream] = self._path(segment.stream, hosts)
        self.counters.visits += len(path.hops) * len(hosts)
        return path

    @property
    def head(self) -> int:
        """The first host that has a slice: where rows come in."""
        return next((host for host in self.order if self.shares.weight(host)), self.order[0])

    def _visited(self) -> tuple[int, ...]:
        """All hosts but those that have no slice, and nothing left of an earlier one."""
        numbers = self.book.numbers
        idle = [host for host in self.order if not self.shares.weight(host)]
        away = {host for host in idle if not self._holds_work(host)}
        return tuple(host for host in numbers if host not in away) if away else numbers

    def _measured(
        self,
        loads: Mapping[int, Usage],
        rates: Sequence[float] | None,
        throughput: float | None,
    ) -> None:
        """With ``adapt``, slices follow the loads from the next border on."""
        behind = self._rings(max(self.lengths.now))[2]
        there = [n for n in loads if n in self.order and n not in behind]
        measured = {n: self.book.reported(n) for n in there}
        if self.adapt and self.shares.follow(measured, now=self.seconds):
            self._set_slices()
            self.counters.switches += 1

    def learn_costs(self, spent: Spent) -> None:
        """What rows cost was measured: the ring gets the length that the cost model asks for."""
        if not self.adapt or self.ring_length is not None:
            return
        hosts = sum(self.shares.weight(host) > 0 for host in self.order)
        found = lengths_of(costs_of(spent, self.profiles), self.profiles, hosts, self.objective)
        if self.lengths.follow([MAX_HOSTS if n >= hosts else n for n in found]):
            self._set_slices()
            self._relocating = self.relocation == "aggressive"
            self.counters.switches += 1

    def _path(self, stream: int, hosts: tuple[int, ...]) -> Path:
        mine = self.profiles[stream]
        order = sorted(
            self._others(stream),
            key=lambda k: (mine.selectivity_with(k) * self.profiles[k].rows_in_window, k),
        )
        return Path(tuple(Hop((k,), hosts) for k in order))

    def expire(self, watermark: int) -> None:
        """Forget ranges that no row to come can reach."""
        super().expire(watermark)
        for rows, counts, window in zip(self._rows, self._counts, self.windows, strict=True):
            rows.expire(watermark - window)
            counts.expire(watermark - window)

    # -- hosts come and go

    def add_host(self, host: Host) -> tuple[Move, ...]:
        """A host joins: at the tail (passive), or where least state has to move (aggressive)."""
        super().add_host(host)
        self.shares.add(host.number, host.cpu)
        if self.relocation == "passive":
            self.order.append(host.number)
            self._set_slices()
            return ()
        return self._reorder([host.number], [])

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        """A host leaves; what it held goes to the hosts that stay, from the log if it is lost."""
        super().remove_host(number, lost=lost)
        if number not in self.order:  # it left before, and what it held went then
            return ()
        self.shares.remove(number)
        moves = self._reorder([], [number])
        if lost:
            moves = tuple(m._replace(source=None) if m.source == number else m for m in moves)
        return moves

    def _holds_work(self, number: int) -> bool:
        return any(rows.holds(number) for rows in self._rows)

    def _reorder(self, joining: Sequence[int], leaving: Sequence[int]) -> tuple[Move, ...]:
        self.order = ring_order_after(self.order, joining, leaving)
        self._set_slices()
        self.counters.switches += 1
        return () if self.border == NEVER else self._settle(self.border, onward=False)

    # -- slices

    @property
    def held(self) -> list[list[tuple[int, int, int]]]:
        """By stream, (host, start, stop) of what is stored, oldest first."""
        return [rows.dump() for rows in self._rows]

    def _set_slices(self) -> None:
        """Slices in proportion to the hosts' shares, by rows or by age.

        Hosts without a share stand before the head, those that the ring is too short for behind
        the tail: what these hold stays until it expires, or moves when the ring is relocated.  A
        segment stays at the head until it ends; ``centred`` slices begin half a segment earlier,
        so that they are even for rows in the middle of the next one.
        """
        self._sliced_at = self.border
        early = self.segment_length // 2 if self.centred else 0
        self._cuts: list[tuple[list[int], list[int]]] = []  # by stream: hosts, ages of their rows
        for stream, (rows, window) in enumerate(zip(self._rows, self.windows, strict=True)):
            away, ring, behind = self._rings(self.lengths.now[stream])
            ages = self._ages(stream, ring)
            cut = [max(age - early, 0) for age in ages[:-1]] + [window + 1]
            every = [0] * len(away) + cut + [window + 1] * len(behind)
            self._cuts.append(([*away, *ring, *behind], every))
            rows.set_slices(*self._cuts[-1])

    @property
    def ages(self) -> list[list[int]]:
        """By stream, the ages at which slices begin, head first."""
        return [[0, *ages[:-1]] for _, ages in self._cuts]

    def _rings(self, length: int) -> tuple[list[int], list[int], list[int]]:
        """The hosts without a share, so many of the others, and the rest."""
        away = [host for host in self.order if not self.shares.weight(host)]
        there = [host for host in self.order if self.shares.weight(host)]
        if not there:
            away, there = [], list(self.order)
        return away, there[:length], there[length:]

    def _ages(self, stream: int, ring: Sequence[int]) -> list[int]:
        """The age below which the rows of each host are."""
        window, reached, shares = self.windows[stream], 0.0, []
        weights = [self.shares.weight(host) or 1.0 for host in ring]
        for weight in weights:
            reached += weight
            shares.append(reached / sum(weights))
        if self.slices == "rows" and self.border != NEVER:
            ages = self._counts[stream].ages(shares, window=window, now=self.border)
            if ages is not None:
                return ages
        return [-int(-(window + 1) * share // 1) for share in shares]

    def _settle(self, now: int, *, onward: bool) -> tuple[Move, ...]:
        """Everything to where its age belongs; ``onward``: but never back towards the head."""
        moves: list[Move] = []
        for stream, rows in enumerate(self._rows):
            moves += rows.settle(stream, now, NEVER, FOREVER, onward)
        self.counters.moves += len(moves)
        return tuple(moves)

    # -- figures and plain data

    def describe(self) -> Description:
        """Nothing is stored twice; the overhead is rows and state passed from host to host."""
        hosts = len(self.order)
        entries = sum(map(len, self._rows))
        passed = sum(profile.rate for profile in self.profiles) * (hosts - 1)
        return Description(
            strategy=self.name,
            exact=True,
            hosts=tuple(host.number for host in self.book.hosts),
            entries=entries,
            state_bytes=24 * entries,
            counters=self.counters,
            expected_overhead=2 * passed,
            details={
                "ring": list(self.order),
                "lengths": [min(n, hosts) for n in self.lengths.now],
                "relocation": self.relocation,
            },
        )

    def state(self) -> dict[str, Any]:
        """Everything as JSON-able data."""
        return super().state() | {
            "order": list(self.order),
            "shares": self.shares.state(),
            "lengths": self.lengths.state(),
            "counts": [counts.dump() for counts in self._counts],
            "sliced_at": self._sliced_at,
            "relocating": self._relocating,
            "cuts": [[list(hosts), list(ages)] for hosts, ages in self._cuts],
            "held": [[list(each) for each in held] for held in self.held],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the router that ``state`` described."""
        super().restore(state)
        self.order = list(state["order"])
        self.shares.restore(state["shares"], now=self.seconds)
        lengths = state["lengths"]  # once only those of now were written
        self.lengths = RingLengths(*([lengths] if isinstance(lengths[0], int) else lengths))
        for counts, segments in zip(self._counts, state["counts"], strict=True):
            counts.fill(segments)
        self._sliced_at, self._relocating = state["sliced_at"], state["relocating"]
        self._cuts = [(list(hosts), list(ages)) for hosts, ages in state["cuts"]]
        for rows, cut, held in zip(self._rows, self._cuts, state["held"], strict=True):
            rows.set_slices(*cut)
            rows.fill(held)


def ring_segment(longest_window: int, hosts: int) -> int:
    """How long a segment may be where so many hosts share a window.

    >>> ring_segment(1000, 10), ring_segment(1, 10)
    (50, 1)
    """
    return max(longest_window // (SLICE_SEGMENTS * hosts), 1)


def _check(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise RoutingError(f"{name} is {value!r}; it must be {' or '.join(map(repr, known))}")
