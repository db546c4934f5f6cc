"""Which host gets which stretches of time of whole tables, by counts of their rows over time.

Routers decide at every border for the segments of a continuous join; here all is known before, so
segments are cut where the work is, and dealt out at once.  Nothing is known of rows but counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from windjoin.diffusion.errors import RoutingError

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
EARLIEST, LATEST = -(2**63), 2**63 - 1
FINENESS = (8, 4, 2)  # segments per host that are tried, while copies stay few
MOST_COPIES = 1.1  # rows sent per row, for the sake of balance
Stretch = tuple[int, int, tuple[int, ...]]  # low <= t < high, and the hosts that get its rows


class Pieces(NamedTuple):
    """Piece p begins at ``borders[p]``; its hosts are ``hosts[offsets[p] : offsets[p + 1]]``."""

    borders: I64
    offsets: I64
    hosts: I32


def pieces(stretches: Sequence[Stretch]) -> Pieces:
    """Stretches that may overlap, cut into pieces that do not; ends are clipped to int64.

    >>> [part.tolist() for part in pieces([(0, 10, (0,)), (8, 20, (1,))])][1:]
    [[0, 0, 1, 3, 4, 4], [0, 0, 1, 1]]
    """
    stretches = [each for each in stretches if each[0] <= LATEST and each[1] > EARLIEST]
    low = [max(EARLIEST, stretch[0]) for stretch in stretches]
    high = [min(LATEST + 1, stretch[1]) for stretch in stretches]
    borders = sorted({EARLIEST, *low, *(end for end in high if end <= LATEST)})
    chosen: list[set[int]] = [set() for _ in borders]
    place = {border: number for number, border in enumerate(borders)}
    for first, last, (_, _, hosts) in zip(low, high, stretches, strict=True):
        for piece in range(place[first], place.get(last, len(borders))):
            chosen[piece].update(hosts)
    ends = np.cumsum([0, *map(len, chosen)]).astype(np.int64)
    flat = [host for hosts in chosen for host in sorted(hosts)]
    return Pieces(np.array(borders, np.int64), ends, np.array(flat, np.int32))


@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows of every stream by time: bin b is ``[start + b * width, start + (b + 1) * width)``."""

    start: int
    width: int
    rows: F64  # (streams, bins)

    def up_to(self, stream: int, times: Sequence[int]) -> F64:
        """How many rows of the stream are before each of ``times``; even inside a bin."""
        return self.within(stream, np.array([(time - self.start) / self.width for time in times]))

    def within(self, stream: int, bins: F64) -> F64:
        """The same by places in bins, from the first on."""
        ends = np.concatenate([[0.0], np.cumsum(self.rows[stream])])
        found: F64 = np.interp(bins, np.arange(len(ends)), ends)
        return found

    def scaled(self, factors: Sequence[float]) -> Histogram:
        """The same with as many times the rows of each stream: of samples."""
        return Histogram(self.start, self.width, self.rows * np.array(factors)[:, None])

    @property
    def stop(self) -> int:
        """The end of the last bin."""
        return self.start + self.width * int(self.rows.shape[1])


@dataclass(frozen=True, slots=True)
class Expected:
    """What a placement is expected to lead to."""

    copies: float  # rows sent per row
    imbalance: float  # largest over mean work
    segment: float  # mean length in ticks


@dataclass(frozen=True, slots=True)
class JoinWork:
    """Expected work by time of the master's rows."""

    histogram: Histogram
    windows: Sequence[int]
    pair: float
    known: dict[int, F64] = field(default_factory=dict)

    def by_bin(self, master: int) -> F64:
        """Rows that are there, and pairs with the master's rows."""
        if master not in self.known:
            self.known[master] = self._by_bin(master)
        return self.known[master]

    def _by_bin(self, master: int) -> F64:
        histogram = self.histogram
        lows = np.arange(histogram.rows.shape[1], dtype=np.float64)
        highs = lows + 1 + self.windows[master] / histogram.width
        pairs = np.zeros(len(lows))
        for stream, window in enumerate(self.windows):
            if stream != master:
                near = histogram.within(stream, highs)
                near = near - histogram.within(stream, lows - window / histogram.width)
                pairs += near * histogram.rows[master]
        work: F64 = histogram.rows.sum(axis=0) + self.pair * pairs
        return work


def best_master(histogram: Histogram, windows: Sequence[int]) -> int:
    """The stream for which the others are copied least."""
    rows = histogram.rows.sum(axis=1)

    def copied(master: int) -> float:
        others = (s for s in range(len(windows)) if s != master)
        return float(sum((windows[s] + windows[master]) * rows[s] for s in others))

    return min(range(len(windows)), key=lambda stream: (copied(stream), stream))


def segments_for(
    work: JoinWork, master: int, hosts: int, segment: int | None
) -> tuple[list[Stretch], Expected]:
    """The master's segments with their hosts: as fine as copies allow."""
    if segment is not None:
        parts = assign(fixed_cuts(work.histogram, segment), work, master, hosts)
        return parts, expected_of(parts, work, master, hosts)
    for fineness in (*FINENESS, 1):
        parts = assign(equal_cuts(work, master, hosts * fineness), work, master, hosts)
        expected = expected_of(parts, work, master, hosts)
        if expected.copies <= MOST_COPIES:
            break
    return parts, expected


def equal_cuts(work: JoinWork, master: int, count: int) -> list[tuple[int, int, int]]:
    """``count`` segments of equal expected work: low, high, how many shares fell on it.

    Where all is at one instant several shares fall on one segment: more than one host is needed.
    """
    ends = np.concatenate([[0.0], np.cumsum(work.by_bin(master))])
    places = np.interp(np.linspace(0, ends[-1], count + 1)[1:-1], ends, np.arange(len(ends)))
    histogram = work.histogram
    cuts = [histogram.start + int(place * histogram.width) for place in places]
    parts: list[tuple[int, int, int]] = []
    low, shares = EARLIEST, 1
    for cut in cuts:
        if cut <= max(low, histogram.start):
            shares += 1
            continue
        parts.append((low, cut, shares))
        low, shares = cut, 1
    return [*parts, (low, LATEST + 1, shares)]


def fixed_cuts(histogram: Histogram, length: int) -> list[tuple[int, int, int]]:
    """Segments of one length."""
    count = (histogram.stop - histogram.start) // length
    if length < 1 or count > 1 << 20:
        raise RoutingError(
            f"segment of {length} ticks cuts {histogram.stop - histogram.start} ticks into"
            f" {count} segments; choose one that makes between 1 and {1 << 20}"
        )
    cuts = [EARLIEST, *range(histogram.start + length, histogram.stop, length), LATEST + 1]
    return [(low, high, 1) for low, high in pairwise(cuts)]


def assign(
    cuts: Sequence[tuple[int, int, int]], work: JoinWork, master: int, hosts: int
) -> list[Stretch]:
    """Longest work first, always to the host with the least."""
    loads = _work_between(cuts, work, master)
    load = np.zeros(hosts)
    chosen: list[Stretch | None] = [None] * len(cuts)
    for number in sorted(range(len(cuts)), key=lambda n: (-loads[n], n)):
        low, high, shares = cuts[number]
        few = np.argsort(load, kind="stable")[: min(shares, hosts)]
        load[few] += loads[number] / len(few)
        chosen[number] = (low, high, tuple(sorted(int(host) for host in few)))
    return [part for part in chosen if part is not None]


def _work_between(cuts: Sequence[tuple[int, int, object]], work: JoinWork, master: int) -> F64:
    ends = np.concatenate([[0.0], np.cumsum(work.by_bin(master))])
    histogram = work.histogram

    def until(time: int) -> float:
        place = (time - histogram.start) / histogram.width
        return float(np.interp(place, np.arange(len(ends)), ends))

    return np.array([until(high) - until(low) for low, high, _ in cuts])


def near_master(
    parts: Sequence[Stretch], windows: Sequence[int], master: int
) -> list[list[Stretch]]:
    """The master's rows to the hosts of their segment, others to all hosts that may need them."""
    return [
        list(parts)
        if stream == master
        else [(low - window, high + windows[master], hosts) for low, high, hosts in parts]
        for stream, window in enumerate(windows)
    ]


def expected_of(parts: Sequence[Stretch], work: JoinWork, master: int, hosts: int) -> Expected:
    """Copies and imbalance by the histogram."""
    histogram = work.histogram
    sent = float(histogram.rows[master].sum())
    for stream, near in enumerate(near_master(parts, work.windows, master)):
        if stream != master:
            cut = pieces(near)
            borders = [*(int(border) for border in cut.borders), LATEST + 1]
            rows = np.diff(histogram.up_to(stream, borders))
            sent += float((rows * np.diff(cut.offsets)).sum())
    load = np.zeros(hosts)
    for (_, _, chosen), amount in zip(parts, _work_between(parts, work, master), strict=True):
        load[list(chosen)] += amount / len(chosen)
    total = float(histogram.rows.sum())
    length = (histogram.stop - histogram.start) / len(parts)
    return Expected(sent / total, float(load.max() / load.mean()), length)


def stored_once(
    work: JoinWork, hosts: int, strategy: str, segment: int | None
) -> list[list[Stretch]]:
    """For every stream, its rows on one host each.

    ``ctr``: what is correlated lies together, so partial results travel little.  ``psp``: slices of
    a window lie on all hosts in turn, so that every host has its share of any probe.
    """
    histogram = work.histogram
    if strategy == "ctr":
        parts, _ = segments_for(work, best_master(histogram, work.windows), hosts, segment)
        return [[(low, high, chosen[:1]) for low, high, chosen in parts] for _ in work.windows]
    placed: list[list[Stretch]] = []
    for window in work.windows:
        length = segment or max(1, window // hosts, (histogram.stop - histogram.start) >> 12)
        cuts = fixed_cuts(histogram, length)
        placed.append([(low, high, (n % hosts,)) for n, (low, high, _) in enumerate(cuts)])
    return placed
