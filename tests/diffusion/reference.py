"""The executable semantics of `router`, on nothing but row times: slow, and meant to be read.

Every engine that follows a router (threads, simulator, Spark) does what `ReferenceCluster` does,
and this is what the invariant of all routers is tested with.  It knows nothing of any strategy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.router import DEFAULT_MARKS, Hop, Move, Part, Path, Placement, Router
from windjoin.diffusion.segments import Segment


class Row(NamedTuple):
    """A row without payload; rows compare in the total order."""

    t: int
    stream: int
    arrival: int
    group: int = 0  # partition group: the hash of its join key


class Partial(NamedTuple):
    """Rows that may become a combination, and the marks they have in common."""

    rows: tuple[Row, ...]
    marks: int


class ReferenceCluster:
    """Hosts that keep rows and do what a router says.

    >>> from windjoin.diffusion.registry import make
    >>> from windjoin.diffusion.segments import StreamProfile
    >>> streams = [StreamProfile("a", window=5), StreamProfile("b", window=5)]
    >>> cluster = ReferenceCluster(make("atr", streams, 2, segment_length=10))
    >>> cluster.epoch(0, [Row(1, 0, 0), Row(3, 1, 1), Row(8, 1, 2)])
    10
    >>> [[(row.stream, row.t) for row in rows] for rows in cluster.completed]
    [[(0, 1), (1, 3)]]
    """

    def __init__(self, router: Router) -> None:
        self.router = router
        self.windows = router.windows
        self.stored: dict[int, dict[Row, int]] = {}  # host -> row -> marks
        self.log: list[Row] = []
        self.completed: Counter[tuple[Row, ...]] = Counter()  # rows by stream number -> times

    def epoch(self, border: int, rows: Iterable[Row]) -> int:
        """Route, store, then complete the rows of the segments that start at ``border``.

        Rows at or after the next border are left out.  Returns the next border.
        """
        self.apply(self.router.advance(border))
        stop = self.router.stop(border)
        mine = sorted(row for row in rows if border <= row.t < stop)
        segments = [
            Segment(stream, border, stop, sum(row.stream == stream for row in mine))
            for stream in range(len(self.windows))
        ]
        routes = self.router.route(segments)
        for row in mine:
            self._store(row, routes[row.stream].placement)
        for row in mine:
            self._complete(row, routes[row.stream].path)
        return stop

    def apply(self, moves: Sequence[Move]) -> None:
        """Carry out moves of state, all sources read before any of them forgets."""
        found = [self._found(move) for move in moves]
        for move, rows in zip(moves, found, strict=True):
            if move.source is not None and not move.keep:
                for row in rows:
                    self.stored[move.source].pop(row, None)
        for move, rows in zip(moves, found, strict=True):
            target = self.stored.setdefault(move.target, {})
            for row in rows:
                target[row] = target.get(row, 0) | move.marks

    def lose(self, host: int) -> None:
        """The host is lost with all it holds."""
        self.stored.pop(host, None)
        self.apply(self.router.remove_host(host, lost=True))

    def _found(self, move: Move) -> list[Row]:
        held = self.log if move.source is None else self.stored.get(move.source, {})
        return [
            row
            for row in held
            if row.stream == move.stream
            and move.start <= row.t < move.stop
            and (not move.groups or row.group in move.groups)
        ]

    def _store(self, row: Row, placement: Placement) -> None:
        self.log.append(row)
        for part in placement.parts:
            if _contains(part, row):
                held = self.stored.setdefault(part.host, {})
                if row in held:
                    raise RoutingError(f"{row} is sent to host {part.host} twice")
                held[row] = part.marks

    def _complete(self, row: Row, path: Path) -> None:
        partials = [Partial((row,), DEFAULT_MARKS)]
        for number, hop in enumerate(path.hops):
            longer: list[Partial] = []
            for host, marks in _visits(row, hop) if number == 0 else ((h, -1) for h in hop.hosts):
                arriving = [Partial(p.rows, marks if number == 0 else p.marks) for p in partials]
                longer += self._extend(row, host, hop, arriving)
            partials = longer
        for partial in partials:
            by_stream = tuple(sorted(partial.rows, key=lambda member: member.stream))
            self.completed[by_stream] += 1

    def _extend(self, row: Row, host: int, hop: Hop, partials: list[Partial]) -> list[Partial]:
        voids = hop.voids.get(host, ())
        held = self.stored.get(host, {})
        for stream in hop.streams:
            oldest = row.t - self.windows[stream]
            reached = [
                (other, marks)
                for other, marks in held.items()
                if other.stream == stream
                and oldest <= other.t
                and other < row
                and not any(start <= other.t < stop for start, stop in voids)
            ]
            partials = [
                Partial((*partial.rows, other), partial.marks & marks)
                for partial in partials
                for other, marks in reached
                if partial.marks & marks
            ]
        return partials


def _contains(part: Part, row: Row) -> bool:
    inside = part.start <= row.t < part.stop
    return inside and (not part.groups or row.group in part.groups)


def _visits(row: Row, hop: Hop) -> list[tuple[int, int]]:
    """The hosts that a row visits in its first hop, with its marks there."""
    if not hop.parts:
        return [(host, DEFAULT_MARKS) for host in hop.hosts]
    return [(part.host, part.marks) for part in hop.parts if _contains(part, row)]
