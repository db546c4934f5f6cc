"""Rows that move on round a ring while blocks are in flight: PSP-I of Wang, Rundensteiner 2009.

What has aged out of a slice is passed on at once, and deleted only when no block in flight may see
it any more.  Every block carries, for each host and stream, the stretches it may see there (the
published pairs of StateStart and StateEnd): those of the ring when the block set out.  So each row
meets each block at exactly one host, and nobody waits for a move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from windjoin.diffusion.host_window import LAST, LONG_AGO
from windjoin.diffusion.router import Hop
from windjoin.diffusion.router_clock import RouterClock

Ranges = list[tuple[int, int]]


class Passed(NamedTuple):
    """Rows that a host has passed on and keeps for blocks that set out before ``block``."""

    block: int
    host: int
    stream: int
    start: int
    stop: int


class Passing:
    """What is kept for blocks in flight, and what those that set out now may see.

    >>> passing = Passing()
    >>> passing.keep(Passed(7, 0, 0, 10, 20)), list(passing.released(6)), len(passing.released(7))
    (None, [], 1)
    """

    def __init__(self) -> None:
        self._kept: deque[Passed] = deque()
        self._outside: list[dict[int, tuple[tuple[int, int], ...]]] | None = None

    def keep(self, passed: Passed) -> None:
        """A host passed rows on; blocks in flight may still meet them there."""
        self._kept.append(passed)

    def keeps(self, host: int, stream: int, start: int, stop: int) -> bool:
        """Whether a host keeps any such rows, so that it must not get them again."""
        return any(
            one.host == host and one.stream == stream and one.start < stop and start < one.stop
            for one in self._kept
        )

    def released(self, oldest: int | None) -> Sequence[Passed]:
        """What no block needs any more; ``oldest``: the first one in flight, None: none is."""
        found = []
        while self._kept and (oldest is None or self._kept[0].block <= oldest):
            found.append(self._kept.popleft())
        return found

    def see(
        self, held: Sequence[Iterable[tuple[int, int, int]]] | None, clock: RouterClock
    ) -> None:
        """Blocks that set out now see this: by stream (host, start, stop); None: all there is."""
        if held is None:
            self._outside = None
            return
        self._outside = []
        for ranges in held:
            by_host: dict[int, Ranges] = {}
            for host, start, stop in ranges:
                by_host.setdefault(host, []).append((clock.real(start), clock.real_stop(stop)))
            self._outside.append({
                host: tuple(_outside(sorted(seen))) for host, seen in by_host.items()
            })  # fmt: skip

    def limited(self, hop: Hop) -> Hop:
        """A hop, in event time, over hosts that hold what it is about, and that alone."""
        if self._outside is None:
            return hop
        (stream,) = hop.streams
        outside = self._outside[stream]
        hosts = tuple(host for host in hop.hosts if host in outside)
        return Hop(hop.streams, hosts, {host: outside[host] for host in hosts}, hop.parts)


def _outside(ranges: Ranges) -> Iterator[tuple[int, int]]:
    """All times that none of these contains.

    >>> [(a, b) for a, b in _outside([(5, 7), (7, 9)])] == [(LONG_AGO, 5), (9, LAST + 1)]
    True
    """
    reached = LONG_AGO
    for start, stop in ranges:
        if start > reached:
            yield reached, start
        reached = max(reached, stop)
    if reached <= LAST:
        yield reached, LAST + 1
