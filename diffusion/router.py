"""The interface of all routers, and what a host does with what a router says.

A router is asked at every **border**, an instant at which segments of all streams start:

1. ``advance(border)``: state that has to change hosts first, as `Move`;
2. ``place(segment)`` for every segment that starts there: where its rows are stored;
3. ``path(segment)`` for each of them, after all were placed: where a row of the segment, and then
   its partial results, travel to be completed.

``route`` does 2 and 3.  ``stop(border)`` says where the segments that start at the border end, that
is, the next border.  Borders come in ascending order; ``expire(watermark)`` says that all borders
to come are at or after the watermark.

Executable semantics
--------------------
Rows are ordered by ``(t, stream, arrival)``.  A combination is completed by its latest row ``p``
and its members lie in ``[t(p) - W_i, t(p)]``.  Every host keeps, per stream, the rows stored there,
each with ``marks``, a set of bits.

* **store**: row ``u`` of a segment is stored at the host of every `Part` of the placement that
  contains it (``part.start <= t(u) < part.stop``, and its partition group is one of ``part.groups``
  if there are any), with the marks of the part.  No two parts of one host contain the same row.
* **first hop**: ``p`` visits the hosts of the hop.  If the hop has parts, ``p`` visits the host of
  each part that contains it, with the marks of that part, and no other; if it has none, every host
  in ``hop.hosts`` with mark 1.  There it is a partial result of itself alone.
* **every hop**: all partial results of the hop before come to each host of ``hop.hosts``.  A host
  extends them by the streams of ``hop.streams``, one after the other: with each row ``u`` stored
  there that is inside the window, that is earlier than ``p``, whose time is in none of the host's
  ``hop.voids``, and that has a mark in common with the partial result.  The marks of the longer
  partial result are those common to all its members.
* what leaves the last hop is complete: a candidate the predicate decides on.
* **move**: rows of the stream in ``[start, stop)`` (of the groups) that the source holds, or that
  the log holds where the source is None, are stored at the target; rows that are already there
  only gain the marks.  A source forgets what it passed on unless ``keep``.  Nothing is completed by
  a move.

"Earlier than ``p``" needs synchronisation as soon as there is more than one hop: rows of one border
are stored everywhere before any of them travels (epochs), or links are FIFO in event time.
With one hop (ATR, groups, single) hosts may as well complete combinations in order of arrival.

The invariant every exact router keeps, and that ``tests/diffusion`` checks without payload: each
combination inside the windows is completed at exactly one place, and no row is stored at a host
twice.  For ``groups`` only combinations of one partition group count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host, LoadBook, Usage, Weights
from windjoin.diffusion.ring_slices import Spent
from windjoin.diffusion.segments import NEVER, Segment, StreamProfile, check_profiles

DEFAULT_MARKS = 1  # bit 0: what routers that need no marks give every row
STATE_VERSION = 1


class Part(NamedTuple):
    """Rows of a segment in ``[start, stop)`` at one host."""

    host: int
    start: int
    stop: int
    marks: int = DEFAULT_MARKS  # bits; rows join only with rows that share one
    groups: tuple[int, ...] = ()  # only rows of these partition groups; () is all


class Placement(NamedTuple):
    """Where the rows of a segment are stored."""

    parts: tuple[Part, ...]

    @property
    def hosts(self) -> tuple[int, ...]:
        """The hosts that store any of it, ascending."""
        return tuple(sorted({part.host for part in self.parts}))


class Hop(NamedTuple):
    """One step of a path: what is probed, where, and what is void there."""

    streams: tuple[int, ...]  # probed one after the other at each host
    hosts: tuple[int, ...]  # ascending
    voids: Mapping[int, tuple[tuple[int, int], ...]] = {}  # host -> time ranges not probed there
    parts: tuple[Part, ...] = ()  # first hop only: which rows go where; () is all rows, all hosts


class Path(NamedTuple):
    """The way of a row of one segment, and of its partial results, to completion."""

    hops: tuple[Hop, ...]


class Route(NamedTuple):
    """Placement and path of a segment."""

    segment: Segment
    placement: Placement
    path: Path


class Move(NamedTuple):
    """State that goes from host to host, or from the log (source None)."""

    stream: int
    start: int
    stop: int
    source: int | None
    target: int
    marks: int = DEFAULT_MARKS
    groups: tuple[int, ...] = ()
    keep: bool = False


@dataclass(slots=True)
class Counters:
    """What a router has decided so far."""

    segments: int = 0
    rows: int = 0
    copies: int = 0  # rows stored, all hosts together
    bytes_stored: int = 0
    visits: int = 0  # (host, hop) pairs of all paths
    moves: int = 0
    switches: int = 0  # master switches, length changes, relocations


@dataclass(frozen=True, slots=True)
class Description:
    """A router about itself."""

    strategy: str
    exact: bool
    hosts: tuple[int, ...]
    entries: int  # segments, tasks, slices or groups remembered
    state_bytes: int
    counters: Counters
    expected_overhead: float  # extra rows per time unit by the strategy's formula
    expected_loss: float = 0.0  # share of the results that is not found
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def replication(self) -> float:
        """Copies stored per row so far."""
        return self.counters.copies / self.counters.rows if self.counters.rows else 0.0


class Router(ABC):
    """Which host gets which segment; the module's text says what a host makes of the answers."""

    name: ClassVar[str]
    exact: ClassVar[bool] = True
    needs_groups: ClassVar[bool] = False  # rows must carry a partition group
    passes_on: ClassVar[bool] = False  # a ring: what `advance` moves need stop nobody if `onward`
    onward: bool = False  # the latest moves lead to hosts whose rows are all older

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None = None,
    ) -> None:
        self.profiles = check_profiles(profiles)
        if segment_length < 1:
            raise RoutingError(f"segment_length is {segment_length}; it must be at least 1")
        self.segment_length = segment_length
        self.windows = tuple(profile.window for profile in self.profiles)
        self.max_window = max(self.windows)
        self.book = LoadBook(hosts, span=segment_length, weights=weights)
        self.counters = Counters()
        self.border = NEVER  # the latest border that was advanced to
        self.watermark = NEVER
        self.seconds = 0.0  # when the last report came

    # -- what a strategy answers ---------------------------------------------------------------

    @abstractmethod
    def place(self, segment: Segment) -> Placement:
        """Where the rows of a segment are stored.  Asked again, it answers the same."""

    @abstractmethod
    def path(self, segment: Segment) -> Path:
        """The way to completion of the rows of a segment that was placed.

        Asked again after a host was lost, the answer avoids that host.
        """

    @abstractmethod
    def describe(self) -> Description:
        """State size, decisions and overhead so far."""

    # -- what every strategy may refine --------------------------------------------------------

    def stop(self, border: int) -> int:
        """Where the segments that start at ``border`` end."""
        return border + self.segment_length

    def advance(self, border: int) -> tuple[Move, ...]:
        """A border is reached: what must move before its segments are placed."""
        if border < self.border:
            raise RoutingError(f"border {border} comes after border {self.border}")
        self.border = border
        return ()

    def route(self, segments: Sequence[Segment]) -> list[Route]:
        """Place all segments of one border, then find their paths."""
        placements = [self.place(segment) for segment in segments]
        paths = [self.path(segment) for segment in segments]
        return [Route(*each) for each in zip(segments, placements, paths, strict=True)]

    def report(
        self,
        loads: Mapping[int, Usage],
        *,
        rates: Sequence[float] | None = None,
        throughput: float | None = None,
        since: int | None = None,
        now: float | None = None,
    ) -> None:
        """Measured host usage, stream rates (rows per time unit) and results per time unit.

        since: work due before this time is part of the usage; the border if not given
        now: seconds, on any clock that goes on
        """
        self.book.report(loads, now=self.border if since is None else since)
        self.seconds = self.seconds + 1.0 if now is None else now
        if rates is not None:
            self._set_rates(rates)
        self._measured(loads, rates, throughput)

    def retreat(self, slow: Sequence[int]) -> None:  # noqa: B027
        """Hosts were found to be slow: what they were to do later may be given to others."""

    def _measured(  # noqa: B027
        self,
        loads: Mapping[int, Usage],
        rates: Sequence[float] | None,
        throughput: float | None,
    ) -> None:
        """Follow what `report` has taken; a router that does not adapt has nothing to do."""

    def expire(self, watermark: int) -> None:
        """No segment will start before ``watermark``: forget what none of them can reach."""
        self.watermark = max(self.watermark, watermark)
        self.book.settle(self.watermark - self.max_window)

    def add_host(self, host: Host) -> tuple[Move, ...]:
        """A host joins.  The moves are to be carried out before the next border."""
        self.book.add(host)
        return ()

    def remove_host(self, number: int, *, lost: bool) -> tuple[Move, ...]:
        """A host leaves: planned (it gets no new work and drains), or lost with all it held.

        The moves are to be carried out before the next border.  After a loss, paths of segments
        that are still open must be asked for again.
        """
        if lost:
            if self.book.open_hosts == [number]:
                raise RoutingError(
                    f"host {number} is the last one that takes work; add another first"
                )
            self.book.remove(number)
        else:
            self.book.close(number)
        return ()

    def drained(self, number: int) -> bool:
        """Whether a host that was removed as planned holds nothing that is still needed.

        Once it does, it is forgotten and its number may be used again.
        """
        self.book.require(number)
        if number in self.book.open_hosts or self._holds_work(number):
            return False
        self.book.remove(number)
        return True

    @abstractmethod
    def _holds_work(self, number: int) -> bool:
        """Whether anything stored at the host, or still to come there, may be probed."""

    @property
    def held(self) -> list[list[tuple[int, int, int]]]:
        """Of a ring, by stream: (host, start, stop) of what is stored, oldest first."""
        raise NotImplementedError(f"strategy {self.name!r} is no ring")

    def learn_costs(self, spent: Spent) -> None:  # noqa: B027  most strategies need not know
        """What rows cost was measured; a ring gets the length that fits."""

    def learn(self, shares: Sequence[Sequence[float]]) -> None:
        """The share of the pairs of two streams that match was measured, for each of them."""
        renewed = [
            StreamProfile(p.name, p.window, p.rate, tuple(mine), p.row_bytes)
            for p, mine in zip(self.profiles, shares, strict=True)
        ]
        self.profiles = check_profiles(renewed)

    # -- plain data ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All it needs to decide on as if nothing had happened, as JSON-able data."""
        return {
            "version": STATE_VERSION,
            "strategy": self.name,
            "segment_length": self.segment_length,
            "border": self.border,
            "watermark": self.watermark,
            "rates": [profile.rate for profile in self.profiles],
            "book": self.book.state(),
            "counters": [getattr(self.counters, name) for name in Counters.__slots__],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the router that `state` described; built with the same profiles and options."""
        if state["version"] != STATE_VERSION:
            raise RoutingError(
                f"router state has version {state['version']}; this code reads {STATE_VERSION}"
            )
        if state["strategy"] != self.name:
            raise RoutingError(f"router state is of {state['strategy']!r}, not of {self.name!r}")
        self.segment_length = state["segment_length"]
        self.border, self.watermark = state["border"], state["watermark"]
        self._set_rates(state["rates"])
        self.book = LoadBook.from_state(state["book"])
        self.counters = Counters(*state["counters"])

    # -- helpers for strategies ----------------------------------------------------------------

    def _set_rates(self, rates: Sequence[float]) -> None:
        if len(rates) != len(self.profiles):
            raise RoutingError(f"got {len(rates)} rates for {len(self.profiles)} streams")
        renewed = [
            StreamProfile(p.name, p.window, rate, p.selectivity, p.row_bytes)
            for p, rate in zip(self.profiles, rates, strict=True)
        ]
        self.profiles = check_profiles(renewed)

    def _check_segment(self, segment: Segment) -> None:
        if not 0 <= segment.stream < len(self.profiles):
            raise RoutingError(
                f"segment of stream {segment.stream}; streams are 0 .. {len(self.profiles) - 1}"
            )
        if segment.stop <= segment.start:
            raise RoutingError(f"segment [{segment.start}, {segment.stop}) is empty")
        if segment.start < self.watermark:
            raise RoutingError(
                f"segment [{segment.start}, {segment.stop}) of stream "
                f"{self.profiles[segment.stream].name!r} starts before the watermark "
                f"{self.watermark}"
            )

    def _others(self, stream: int) -> tuple[int, ...]:
        return tuple(k for k in range(len(self.profiles)) if k != stream)

    def _hand_windows(
        self, source: int | None, target: int, placed: int, groups: tuple[int, ...] = ()
    ) -> list[Move]:
        """What windows reach of all streams, as far as it was placed, from a host or the log."""
        if placed == NEVER:
            return []
        moves = [
            Move(stream, self.border - window, placed, source, target, groups=groups)
            for stream, window in enumerate(self.windows)
        ]
        self.counters.moves += len(moves)
        return moves

    def _count(self, segment: Segment, covered: int) -> None:
        """Book a placement; ``covered`` is the time of all its parts, rows go by their share."""
        length = segment.stop - segment.start
        self.counters.segments += 1
        self.counters.rows += segment.rows
        self.counters.copies += segment.rows * covered // length
        self.counters.bytes_stored += segment.bytes * covered // length
