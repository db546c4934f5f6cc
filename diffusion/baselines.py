"""Routers to compare with: one host, no semantics, and the unadapted forms of ATR and CTR."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from windjoin.diffusion.atr import ATR
from windjoin.diffusion.ctr import CTR
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host, Weights
from windjoin.diffusion.router import Description, Hop, Move, Part, Path, Placement, Router
from windjoin.diffusion.segments import NEVER, Segment, StreamProfile


class Single(Router):
    """Everything on one host.

    >>> streams = [StreamProfile("a", window=10), StreamProfile("b", window=20)]
    >>> router = Single(streams, [Host(3), Host(7)], segment_length=5)
    >>> router.place(Segment(1, 0, 5)).hosts
    (3,)
    """

    name: ClassVar[str] = "single"

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
    ) -> None:
        super().__init__(profiles, hosts, segment_length=segment_length, weights=weights)
        self.home = self.book.least_loaded(1)[0]
        self._placed = NEVER

    def place(self, segment: Segment) -> Placement:
        """Home."""
        self._check_segment(segment)
        self._placed = max(self._placed, segment.stop)
        answer = Placement((Part(self.home, segment.start, segment.stop),))
        self._count(segment, segment.stop - segment.start)
        return answer

    def path(self, segment: Segment) -> Path:
        """Home."""
        self.counters.visits += 1
        return Path((Hop(self._others(segment.stream), (self.home,)),))

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        """If home goes, its state goes to the least loaded of the others."""
        super().remove_host(number, lost=lost)
        if number != self.home:
            return ()
        self.home = self.book.least_loaded(1)[0]
        return tuple(self._hand_windows(None if lost else number, self.home, self._placed))

    def describe(self) -> Description:
        """One entry: home."""
        hosts = tuple(host.number for host in self.book.hosts)
        return Description(self.name, self.exact, hosts, 1, 8, self.counters, 0.0)

    def state(self) -> dict[str, Any]:
        """Home and how far rows were placed."""
        return super().state() | {"home": self.home, "placed": self._placed}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The way back from `state`."""
        super().restore(state)
        self.home, self._placed = state["home"], state["placed"]

    def _holds_work(self, number: int) -> bool:
        return number == self.home


class Random(Router):
    """Each segment to the least loaded host, whatever it has to meet: loses results.

    >>> streams = [StreamProfile("a", window=10), StreamProfile("b", window=20)]
    >>> router = Random(streams, [Host(0), Host(1)], segment_length=5)
    >>> routes = router.route([Segment(0, 0, 5, rows=3), Segment(1, 0, 5, rows=3)])
    >>> [route.placement.hosts for route in routes], router.describe().expected_loss
    ([(0,), (1,)], 1.0)
    """

    name: ClassVar[str] = "random"
    exact: ClassVar[bool] = False

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
    ) -> None:
        super().__init__(profiles, hosts, segment_length=segment_length, weights=weights)
        self._where: dict[tuple[int, int], int] = {}  # (stream, start) -> host, live segments
        self._until: deque[tuple[int, int, int]] = deque()  # (needed until, stream, start)
        self._sizes: dict[tuple[int, int], int] = {}  # (stream, start) -> rows, live segments
        self._kept = self._all = 0  # combinations of placed segments: those on one host, and all

    def place(self, segment: Segment) -> Placement:
        """The least loaded host."""
        self._check_segment(segment)
        key = segment.stream, segment.start
        host = self._where.get(key)
        if host is None:
            host = self._where[key] = self.book.least_loaded(1)[0]
            self._until.append((segment.stop + self.windows[segment.stream], *key))
            self.book.assign([host], rows=segment.rows + 1, bytes=segment.bytes, due=segment.stop)
            self._note_met(segment, host)
            self._sizes[key] = segment.rows
            self._count(segment, segment.stop - segment.start)
        return Placement((Part(host, segment.start, segment.stop),))

    def path(self, segment: Segment) -> Path:
        """Where it is stored, and nowhere else."""
        self.counters.visits += 1
        hosts = self.place(segment).hosts
        return Path((Hop(self._others(segment.stream), hosts),))

    def expire(self, watermark: int) -> None:
        """Forget segments that no window reaches."""
        super().expire(watermark)
        while self._until and self._until[0][0] <= watermark:
            _, stream, start = self._until.popleft()
            self._where.pop((stream, start), None)
            self._sizes.pop((stream, start), None)

    def _note_met(self, segment: Segment, host: int) -> None:
        """Count the combinations of a new segment with those live ones of all other streams."""
        there, everywhere = [0] * len(self.profiles), [0] * len(self.profiles)
        for key, rows in self._sizes.items():
            everywhere[key[0]] += rows
            there[key[0]] += rows if self._where.get(key) == host else 0
        others = self._others(segment.stream)
        self._kept += segment.rows * math.prod(there[k] for k in others)
        self._all += segment.rows * math.prod(everywhere[k] for k in others)

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        """What a lost host held is lost: nothing moves."""
        super().remove_host(number, lost=lost)
        if lost:
            self._where = {key: host for key, host in self._where.items() if host != number}
        return ()

    def describe(self) -> Description:
        """Says how much it loses."""
        hosts = tuple(host.number for host in self.book.hosts)
        entries = len(self._where)
        loss = self.expected_loss()
        return Description(
            self.name, self.exact, hosts, entries, entries * 24, self.counters, 0.0, loss
        )

    def expected_loss(self) -> float:
        """Share of the combinations of live segments that are not all on one host."""
        return 1.0 - self._kept / self._all if self._all else 0.0

    def state(self) -> dict[str, Any]:
        """Where the live segments are, and how many rows every host got."""
        return super().state() | {
            "where": [[*key, host] for key, host in self._where.items()],
            "until": [list(entry) for entry in self._until],
            "sizes": [[*key, rows] for key, rows in self._sizes.items()],
            "met": [self._kept, self._all],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """The way back from `state`."""
        super().restore(state)
        self._where = {(stream, start): host for stream, start, host in state["where"]}
        self._until = deque((until, stream, start) for until, stream, start in state["until"])
        self._sizes = {(stream, start): rows for stream, start, rows in state["sizes"]}
        self._kept, self._all = state["met"]

    def _holds_work(self, number: int) -> bool:
        return number in self._where.values()


class FixedATR(ATR):
    """ATR as it starts: neither master nor segment length ever follow what is measured."""

    name: ClassVar[str] = "atr-fixed"

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
        master: int = 0,
        order: str = "master",
    ) -> None:
        super().__init__(
            profiles,
            hosts,
            segment_length=segment_length,
            weights=weights,
            master=master,
            order=order,
            adapt=False,
        )


class RandomCoverCTR(CTR):
    """CTR whose hops take any host that holds something, and that adapts to nothing."""

    name: ClassVar[str] = "ctr-random"

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
        copies: int = 2,
        warm_up_copies: int = 5,
        seed: int = 1,
    ) -> None:
        super().__init__(
            profiles,
            hosts,
            segment_length=segment_length,
            weights=weights,
            copies=copies,
            warm_up_copies=warm_up_copies,
            max_orders=1,
            adapt=False,
        )
        if not 0 < seed < 1 << 64:
            raise RoutingError(f"seed is {seed}; it must be in 1 .. 2**64 - 1")
        self.table.random = seed
