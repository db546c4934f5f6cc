"""Into which parts a join of whole tables falls: stretches of time, or groups of keys.

A thread joins one part after the other, each with indexes of its own, which near caches hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from windjoin.kernels.equality import Equality
from windjoin.kernels.keys import all_close
from windjoin.kernels.order import Order
from windjoin.kernels.sorting import Sorted, take_keys
from windjoin.kernels.spec import I64, BytesColumn, Equal, JoinSpec, Opaque
from windjoin.kernels.statistics import Statistics
from windjoin.kernels.threads import in_threads
from windjoin.pyx.base.pieces import taken
from windjoin.pyx.encoding.divide import divide

ROWS_OF_A_PART = 400_000  # so many are worth indexes of their own: a burst is shared out
ROWS_OF_A_SMALL_PART = 250_000  # their lists by key lie in nearer caches, in memory just used
ROWS_OF_A_GROUP = 62_500  # of the largest stream: all that is looked at lies in near caches
LEAST_DIVIDED = 3_000_000  # rows of the largest stream, for one thread: dividing is not for nothing
MOST_TWICE = 0.25  # rows in two stretches of time, of all
MOST_GROUPS = 256  # as `divide` can
LEAST_KEYS = 1 << 14  # the newest rows of fewer lie in near caches anyway
SAMPLE_ROWS = 4096
LARGEST_GROUP = 4  # times the mean: of neighbouring keys; else a hash spreads them

Range = tuple[int, int]  # rows [first, last)


@dataclass(frozen=True, slots=True)
class Parts:
    """The streams, and which rows of each meet in each part."""

    streams: Sequence[Sorted]
    ranges: list[list[Range]]
    by: str  # "time" or "keys"


def cut(
    spec: JoinSpec,
    streams: Sequence[Sorted],
    order: Order,
    statistics: Statistics,
    threads: int,
) -> Parts:
    """Parts for so many threads: every result lies in one of them, whole."""
    stretches = _Stretches(spec, streams, order.start)
    count = _stretch_count(stretches, order, threads)
    groups = _group_count(streams, threads)
    if groups > 1 and (count == 1 or stretches.twice(count) > MOST_TWICE * stretches.rows):
        keys = _dividing_keys(spec, order, statistics)
        if keys is not None:
            return _by_key(streams, keys, groups, threads)
    return Parts(streams, [stretches.ranges(part, count) for part in range(count)], "time")


def shared_key(spec: JoinSpec, order: Order) -> list[int] | None:
    """The key of each stream by whose equality alone all hops ask, if there is one."""
    keys: dict[int, int] = {}
    spaces = set()
    for step in order.steps:
        if not isinstance(step.access, Equality) or len(step.access.parts) != 1:
            return None
        for side in step.access.parts[0]:
            if keys.setdefault(side.stream, side.key) != side.key:
                return None
            spaces.add(side.space)
    if len(spaces) != 1:
        return None
    return [keys[stream] for stream in range(len(spec.streams))]


def _dividing_keys(spec: JoinSpec, order: Order, statistics: Statistics) -> list[int] | None:
    """The same, if rows can be divided by it and it has so many values that this is worth it."""
    keys = shared_key(spec, order)
    if keys is None or spec.nearest is not None:
        return None
    if spec.streams[0].keys[keys[0]] == "bytes":
        return None
    if any(isinstance(p, Opaque) for p in spec.predicates):  # these know rows by where they stand
        return None
    shares = [
        statistics.share(p)
        for p in spec.predicates
        if isinstance(p, Equal) and all(keys[k.stream] == k.key for k in (p.left, p.right))
    ]
    return keys if max(shares) * LEAST_KEYS <= 1 else None


def _group_count(streams: Sequence[Sorted], threads: int) -> int:
    """How many groups of keys, if they are worth it."""
    rows = max(len(stream.time) for stream in streams)
    if rows * threads < LEAST_DIVIDED:  # threads would each index what others do
        return 1
    return min(-(-rows // ROWS_OF_A_GROUP // threads) * threads, MOST_GROUPS)


def _by_key(streams: Sequence[Sorted], keys: list[int], groups: int, threads: int) -> Parts:
    """Groups of keys; of integers that lie close together they are neighbours, and need no hash."""
    columns = [stream.keys[key] for stream, key in zip(streams, keys, strict=True)]
    low, shift, groups = _neighbours(columns, groups)
    jobs = [(*job, groups, low, shift) for job in zip(streams, keys, strict=True)]
    divided = in_threads(min(threads, len(jobs)), _divided, jobs)
    ranges = [[(int(b[g]), int(b[g + 1])) for _, b in divided] for g in range(groups)]
    return Parts([stream for stream, _ in divided], ranges, "keys")


def _neighbours(columns: list[Any], groups: int) -> tuple[int | None, int, int]:
    """Least key, 1 << shift keys to a group, how many groups; None: of too unlike size."""
    close = all_close(columns)
    if close is None:
        return None, 0, groups
    low, count = close
    shift = ((count - 1) // groups).bit_length()
    for column in columns:
        sample = column[:: max(len(column) // SAMPLE_ROWS, 1)]
        sizes = np.bincount((sample - low) >> shift)
        if sizes.max(initial=0) * groups > LARGEST_GROUP * len(sample):
            return None, 0, groups
    return low, shift, ((count - 1) >> shift) + 1


def _divided(
    stream: Sorted, key: int, groups: int, low: int | None, shift: int
) -> tuple[Sorted, I64]:
    """Rows of a stream group by group, by time in each, and where the groups begin."""
    column = stream.keys[key]
    assert not isinstance(column, BytesColumn), "texts are not divided"
    own, time, order, begin = divide(column, stream.time, groups, low, shift)
    others = take_keys([*stream.keys[:key], *stream.keys[key + 1 :]], order)
    divided = replace(
        stream,
        time=time,
        columns=[taken(column, order) for column in stream.columns],
        keys=[*others[:key], own, *others[key:]],
        origin=order if stream.origin is None else taken(stream.origin, order),
        varlen=[wide.take(order) for wide in stream.varlen],
    )
    return divided, begin


def _stretch_count(stretches: _Stretches, order: Order, threads: int) -> int:
    """How many stretches of time: small ones if they overlap little."""
    rows = stretches.rows
    large = threads * (2 if threads > 1 and rows >= 2 * threads * ROWS_OF_A_PART else 1)
    if not all(isinstance(step.access, Equality) for step in order.steps):
        return large
    small = rows // ROWS_OF_A_SMALL_PART // threads * threads
    if small <= large or stretches.twice(small) > MOST_TWICE * rows:
        return large
    return small


class _Stretches:
    """The time of the starting stream, cut into stretches of as many rows."""

    def __init__(self, spec: JoinSpec, streams: Sequence[Sorted], start: int) -> None:
        self.spec = spec
        self.streams = streams
        self.start = start
        self.rows = len(streams[start].time)

    def ranges(self, part: int, count: int) -> list[Range]:
        """Rows of every stream that can meet those of a part of the starting stream."""
        first, last = self.rows * part // count, self.rows * (part + 1) // count
        ranges = [
            (0, len(stream.time)) if count == 1 else self._span(first, last, number)
            for number, stream in enumerate(self.streams)
        ]
        ranges[self.start] = first, last
        return ranges

    def twice(self, count: int) -> int:
        """About how many rows of other streams are in two parts."""
        ranges = self.ranges(count // 2, count)
        return sum(
            (end - begin) * count - len(stream.time)
            for number, (stream, (begin, end)) in enumerate(zip(self.streams, ranges, strict=True))
            if number != self.start
        )

    def _span(self, first: int, last: int, number: int) -> Range:
        """A member is at most its own window older and at most the starting window newer."""
        own, time = self.streams[self.start].time, self.streams[number].time
        if first == last:
            return 0, 0
        windows = [stream.window for stream in self.spec.streams]
        earliest = max(int(own[first]) - windows[number], -(2**63))
        latest = min(int(own[last - 1]) + windows[self.start], 2**63 - 1)
        return (
            int(np.searchsorted(time, earliest, "left")),
            int(np.searchsorted(time, latest, "right")),
        )
