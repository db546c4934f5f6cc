"""How the window of a stream is cut into the slices of a ring: over how many hosts, and where.

Wang, Rundensteiner 2009, sections 5.2 to 6: the cost model says how many hosts share the state of
each stream; work follows the rows that a host holds, so slices are even by rows and set anew from
time to time (*smoothing*).  Any cut gives the exact result: it decides balance alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from windjoin.diffusion.ring_cost import Probed, RingCosts, elements, probing_order, ring_lengths
from windjoin.diffusion.segments import StreamProfile

PATIENCE = 3  # readings that agree before a ring gets another length
SLACK = 1.25  # times as long or as short: what differs by less is the same length


class Spent(NamedTuple):
    """What the hosts of a ring were measured to spend, in seconds."""

    joining: float  # of all hosts, on a new row
    sending: float  # for a row or partial result that comes to a host, joining it aside
    network: float  # from one host to the next, where nothing waits
    block: float  # rows that travel together


def costs_of(spent: Spent, profiles: Sequence[StreamProfile]) -> RingCosts:
    """The model's costs of a block, so that it says of a row what was measured of it.

    >>> two = [StreamProfile("a", 100, 1.0, (0.1, 0.1)), StreamProfile("b", 100, 1.0, (0.1, 0.1))]
    >>> round(costs_of(Spent(joining=0.1, sending=0.001, network=0.002, block=1.0), two).compare, 6)
    1.0
    """
    compared = weight = 0.0
    for stream, profile in enumerate(profiles):
        met = _met_by(stream, profiles)
        counts = elements(met)
        each = sum(count * other.rows for count, other in zip(counts, met, strict=True))
        compared += profile.rate * each
        weight += profile.rate
    per_row = compared / weight if weight else 0.0
    compare = 1000 * spent.joining / max(per_row, 1e-9)
    return RingCosts(
        0.0, 0.0, compare * spent.block, 1000 * spent.sending * spent.block, 1000 * spent.network
    )


def _met_by(stream: int, profiles: Sequence[StreamProfile]) -> list[Probed]:
    """The other streams as a row of this one finds them, in the order it probes them."""
    mine = profiles[stream]
    others = [
        Probed(other.rate, other.window, mine.selectivity_with(k))
        for k, other in enumerate(profiles)
        if k != stream
    ]
    return [others[k] for k in probing_order(others)]


def lengths_of(
    costs: RingCosts, profiles: Sequence[StreamProfile], hosts: int, objective: str
) -> list[int]:
    """Over how many hosts the state of each stream is best cut.

    >>> two = [StreamProfile("a", 100, 1.0, (0.1, 0.1)), StreamProfile("b", 100, 1.0, (0.1, 0.1))]
    >>> lengths_of(RingCosts(compare=10.0, network=1.0, send=1.0), two, 8, "latency")
    [8, 8]
    >>> lengths_of(RingCosts(compare=0.001, network=1.0, send=1.0), two, 8, "latency")[0]
    1
    """
    streams = []
    for k, profile in enumerate(profiles):
        shares = [other.selectivity_with(k) for j, other in enumerate(profiles) if j != k]
        streams.append(Probed(profile.rate, profile.window, sum(shares) / len(shares)))
    return list(ring_lengths(costs, streams, hosts, objective=objective).values())


@dataclass(slots=True)
class RingLengths:
    """Over how many hosts each stream is cut; changes once readings agree that it should.

    >>> lengths = RingLengths([4, 4])
    >>> [lengths.follow([2, 4]) for _ in range(3)], lengths.now
    ([False, False, True], [2, 4])
    """

    now: list[int]
    wanted: list[int] | None = None
    agreed: int = 0

    def follow(self, found: Sequence[int]) -> bool:
        """The model says these lengths; whether they are taken."""
        if all(_alike(a, b) for a, b in zip(found, self.now, strict=True)):
            self.wanted, self.agreed = None, 0
            return False
        same = self.wanted is not None and all(
            _alike(a, b) for a, b in zip(found, self.wanted, strict=True)
        )
        self.wanted, self.agreed = list(found), self.agreed + 1 if same else 1
        if self.agreed < PATIENCE:
            return False
        self.now, self.wanted, self.agreed = list(found), None, 0
        return True

    def state(self) -> list[Any]:
        """As JSON-able data; ``RingLengths(*state)`` is the way back.

        >>> RingLengths(*RingLengths([4], [2], 1).state())
        RingLengths(now=[4], wanted=[2], agreed=1)
        """
        return [list(self.now), self.wanted, self.agreed]


def _alike(a: int, b: int) -> bool:
    return max(a, b) <= SLACK * min(a, b)


class RowCounts:
    """How many rows of a stream came in each of the latest segments.

    >>> counts = RowCounts()
    >>> for start, rows in ((0, 30), (10, 10)): counts.add(start, start + 10, rows)
    >>> counts.ages([0.25, 0.5, 1.0], window=19, now=20)  # a quarter of the rows, half, all
    [10, 14, 20]
    """

    def __init__(self) -> None:
        self._segments: deque[tuple[int, int, int]] = deque()

    def add(self, start: int, stop: int, rows: int) -> None:
        """A segment that follows the others."""
        self._segments.append((start, stop, rows))

    def expire(self, horizon: int) -> None:
        """Nothing before it matters any more."""
        while self._segments and self._segments[0][1] <= horizon:
            self._segments.popleft()

    def ages(self, shares: Sequence[float], *, window: int, now: int) -> list[int] | None:
        """The ages below which those shares of the rows are, ascending; None if there are none."""
        total = sum(rows for _, _, rows in self._segments)
        if not total:
            return None
        found: list[int] = []
        newer = 0
        for start, stop, rows in reversed(self._segments):
            while len(found) < len(shares) and shares[len(found)] * total <= newer + rows:
                part = (shares[len(found)] * total - newer) / max(rows, 1)
                found.append(now - stop + -int(-part * (stop - start) // 1))
            newer += rows
        found += [window + 1] * (len(shares) - len(found))
        return [min(max(age, 0), window + 1) for age in found]

    def dump(self) -> list[list[int]]:
        """As JSON-able data."""
        return [list(each) for each in self._segments]

    def fill(self, segments: Sequence[Sequence[int]]) -> None:
        """The way back from `dump`."""
        self._segments = deque((start, stop, rows) for start, stop, rows in segments)
