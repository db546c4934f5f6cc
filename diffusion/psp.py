"""The ring as a router: segments enter at the head and age through the slices of all hosts.

What the protocol of ``ring`` does row by row is said here border by border, for a cluster that
works in epochs: a segment is stored at the head, `advance` moves what has aged out of a slice to
the hosts that come after, and a row's path is ``n - 1`` hops over every host.  A row is at one host
at any border, so no hop needs voids and every combination is completed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host, Usage, Weights
from windjoin.diffusion.ring_relocation import ring_order_after
from windjoin.diffusion.router import Description, Hop, Move, Part, Path, Placement, Router
from windjoin.diffusion.segments import FOREVER, NEVER, Segment, StreamProfile
from windjoin.diffusion.shares import Shares
from windjoin.pyx.routing.aging import AgingRows


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
    ) -> None:
        super().__init__(profiles, hosts, segment_length=segment_length, weights=weights)
        if relocation not in ("aggressive", "passive"):
            raise RoutingError(
                f"relocation is {relocation!r}; it must be 'aggressive' or 'passive'"
            )
        self.relocation = relocation
        self.centred, self.adapt = centred, adapt
        self.shares = Shares({host.number: host.cpu for host in hosts})
        self.order = [host.number for host in hosts]  # head first
        self._rows = [AgingRows(Move) for _ in self.profiles]
        self._paths: dict[int, Path] = {}  # by stream, for the hosts and profiles of `_paths_for`
        self._paths_for: tuple[object, object] = (None, None)
        self._set_slices()

    # -- the router's questions

    def advance(self, border: int) -> tuple[Move, ...]:
        """Pass on what has aged out of each slice."""
        super().advance(border)
        return self._settle(border, onward=True)

    def place(self, segment: Segment) -> Placement:
        """At the head."""
        self._check_segment(segment)
        head = self.head
        if self._rows[segment.stream].add(head, segment.start, segment.stop):
            self._count(segment, segment.stop - segment.start)
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

    def report(
        self,
        loads: Mapping[int, Usage],
        *,
        rates: Sequence[float] | None = None,
        throughput: float | None = None,
        since: int | None = None,
        now: float | None = None,
    ) -> None:
        """Take measurements; with ``adapt``, slices follow the loads from the next border on."""
        super().report(loads, rates=rates, throughput=throughput, since=since, now=now)
        measured = {n: self.book.reported(n) for n in loads if n in self.order}
        if self.adapt and self.shares.follow(measured, now=self.seconds):
            self._set_slices()
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
        for rows, window in zip(self._rows, self.windows, strict=True):
            rows.expire(watermark - window)

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
        """Slices in proportion to the hosts' shares; those with none stand before the head.

        A segment stays at the head until it ends; ``centred`` slices begin half a segment earlier,
        so that they are even for rows in the middle of the next one.
        """
        ring = sorted(self.order, key=lambda host: self.shares.weight(host) > 0)
        speeds = [self.shares.weight(host) for host in ring]
        total = sum(speeds)
        self.ages: list[list[int]] = []  # by stream, those at which slices begin, head first
        for rows, window in zip(self._rows, self.windows, strict=True):
            age, reached, ages = window + 1, 0.0, []
            early = self.segment_length // 2 if self.centred else 0
            for speed in speeds:
                reached += speed
                ages.append(max(-int(-age * reached // total) - early, 0) if reached else 0)
            self.ages.append([0, *ages[:-1]])
            rows.set_slices(ring, ages)

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
            details={"ring": list(self.order), "relocation": self.relocation},
        )

    def state(self) -> dict[str, Any]:
        """Everything as JSON-able data."""
        return super().state() | {
            "order": list(self.order),
            "shares": self.shares.state(),
            "held": [[list(each) for each in held] for held in self.held],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the router that ``state`` described."""
        super().restore(state)
        self.order = list(state["order"])
        self.shares.restore(state["shares"], now=self.seconds)
        self._set_slices()
        for rows, held in zip(self._rows, state["held"], strict=True):
            rows.fill(held)
