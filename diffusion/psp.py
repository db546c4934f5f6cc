"""The ring as a router: segments enter at the head and age through the slices of all hosts.

What the protocol of ``ring`` does row by row is said here border by border, for a cluster that
works in epochs: a segment is stored at the head, `advance` moves what has aged out of a slice to
the hosts that come after, and a row's path is ``n - 1`` hops over every host.  A row is at one host
at any border, so no hop needs voids and every combination is completed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host, Weights
from windjoin.diffusion.ring_relocation import ring_order_after
from windjoin.diffusion.router import Description, Hop, Move, Part, Path, Placement, Router
from windjoin.diffusion.segments import FOREVER, NEVER, Segment, StreamProfile

Held = tuple[int, int, int]  # host, start, stop: rows of a stream in [start, stop)


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
    ) -> None:
        super().__init__(profiles, hosts, segment_length=segment_length, weights=weights)
        if relocation not in ("aggressive", "passive"):
            raise RoutingError(
                f"relocation is {relocation!r}; it must be 'aggressive' or 'passive'"
            )
        self.relocation = relocation
        self.order = [host.number for host in hosts]  # head first
        self.held: list[list[Held]] = [[] for _ in self.profiles]  # oldest first

    # -- the router's questions

    def advance(self, border: int) -> tuple[Move, ...]:
        """Pass on what has aged out of each slice."""
        super().advance(border)
        return tuple(
            move for stream in range(len(self.profiles)) for move in self._age(stream, border)
        )

    def place(self, segment: Segment) -> Placement:
        """At the head."""
        self._check_segment(segment)
        head = self.order[0]
        held = self.held[segment.stream]
        placement = Placement((Part(head, segment.start, segment.stop),))
        if not held or held[-1][2] < segment.stop:
            _extend(held, (head, segment.start, segment.stop))
            self._count(segment, placement)
            self.book.assign([head], rows=segment.rows, bytes=segment.bytes, due=segment.stop)
        return placement

    def path(self, segment: Segment) -> Path:
        """All hosts, once for each other stream, smallest expected output first."""
        self._check_segment(segment)
        mine = self.profiles[segment.stream]
        order = sorted(
            self._others(segment.stream),
            key=lambda k: (mine.selectivity_with(k) * self.profiles[k].rows_in_window, k),
        )
        hosts = tuple(host.number for host in self.book.hosts)
        self.counters.visits += len(order) * len(hosts)
        return Path(tuple(Hop((k,), hosts) for k in order))

    def expire(self, watermark: int) -> None:
        """Forget ranges that no row to come can reach."""
        super().expire(watermark)
        for stream, held in enumerate(self.held):
            horizon = watermark - self.windows[stream]
            held[:] = [(host, max(a, horizon), b) for host, a, b in held if b > horizon]

    # -- hosts come and go

    def add_host(self, host: Host) -> tuple[Move, ...]:
        """A host joins: at the tail (passive), or where least state has to move (aggressive)."""
        super().add_host(host)
        if self.relocation == "passive":
            self.order.append(host.number)
            return ()
        return self._reorder([host.number], [])

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        """A host leaves; what it held goes to the hosts that stay, from the log if it is lost."""
        super().remove_host(number, lost=lost)
        if number not in self.order:  # it left before, and what it held went then
            return ()
        moves = self._reorder([], [number])
        if lost:
            moves = tuple(m._replace(source=None) if m.source == number else m for m in moves)
        return moves

    def _holds_work(self, number: int) -> bool:
        return any(host == number for held in self.held for host, _, _ in held)

    def _reorder(self, joining: Sequence[int], leaving: Sequence[int]) -> tuple[Move, ...]:
        self.order = ring_order_after(self.order, joining, leaving)
        self.counters.switches += 1
        if self.border == NEVER:
            return ()
        return tuple(
            move
            for stream in range(len(self.profiles))
            for move in self._take(stream, self._slices(stream, self.border))
        )

    # -- slices

    def _slices(self, stream: int, now: int) -> list[Held]:
        """The even slices of a stream at ``now``, in proportion to the hosts' cpu, oldest first."""
        speeds = [self.book.require(host).cpu for host in self.order]
        total, reached, stop, slices = sum(speeds), 0.0, FOREVER, []
        age = self.windows[stream] + 1
        for host, speed in zip(self.order, speeds, strict=True):
            reached += speed
            start = now - -int(-age * reached // total) if host != self.order[-1] else NEVER
            slices.append((host, start, stop))
            stop = start
        return slices[::-1]

    def _age(self, stream: int, now: int) -> list[Move]:
        """Let rows move towards the tail as they age, never back to the head."""
        rank = {host: at for at, host in enumerate(self.order)}
        wanted: list[Held] = []
        for host, target, low, high in _overlaps(self.held[stream], self._slices(stream, now)):
            later = rank[target] >= rank[host]
            _extend(wanted, (target if later else host, low, high))
        return self._take(stream, wanted)

    def _take(self, stream: int, wanted: Sequence[Held]) -> list[Move]:
        """Hold the ranges as wanted from now on; return the moves that make it so."""
        moves: list[Move] = []
        renewed: list[Held] = []
        for host, target, low, high in _overlaps(self.held[stream], wanted):
            _extend(renewed, (target, low, high))
            if target != host:
                moves.append(Move(stream, low, high, host, target))
        self.held[stream] = renewed
        self.counters.moves += len(moves)
        return moves

    # -- figures and plain data

    def describe(self) -> Description:
        """Nothing is stored twice; the overhead is rows and state passed from host to host."""
        hosts = len(self.order)
        entries = sum(len(held) for held in self.held)
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
            "held": [[list(each) for each in held] for held in self.held],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the router that ``state`` described."""
        super().restore(state)
        self.order = list(state["order"])
        self.held = [[(h, a, b) for h, a, b in held] for held in state["held"]]


def _overlaps(held: Sequence[Held], wanted: Sequence[Held]) -> Iterator[tuple[int, int, int, int]]:
    """Every stretch that one range of each shares, as (holder, wanted holder, start, stop)."""
    at = 0
    for host, start, stop in held:
        while at < len(wanted) and wanted[at][2] <= start:
            at += 1
        k = at
        while k < len(wanted) and wanted[k][1] < stop:
            target, low, high = wanted[k]
            if low < high:
                yield host, target, max(low, start), min(high, stop)
            k += 1


def _extend(held: list[Held], more: Held) -> None:
    """Append a range, joined with the last one where they touch at one host."""
    if held and held[-1][0] == more[0] and held[-1][2] == more[1]:
        held[-1] = (more[0], held[-1][1], more[2])
    else:
        held.append(more)
