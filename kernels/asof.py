"""As-of joins: of every row of the first stream only the partners nearest in time.

Of a row's partners the nearest stay; of equally near ones the earlier, and of those with one and
the same time the last to arrive if they are not after the row, the first to arrive if they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from windjoin.kernels.equality import Equality
from windjoin.kernels.keys import encode_tables
from windjoin.kernels.order import Order, OrderHop, hops_from
from windjoin.kernels.scan import Scan
from windjoin.kernels.side import Codes, Table
from windjoin.kernels.sorting import Sorted
from windjoin.kernels.spec import I64, Equal, JoinSpec, Key, Nearest
from windjoin.kernels.statistics import Statistics, unseen
from windjoin.kernels.threads import in_threads
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.base.pieces import listen, sorting_by
from windjoin.pyx.encoding.keys import KeySpace, encode_pairs
from windjoin.pyx.indexes.asof import AsofMerge, AsofRows

Progress = Callable[[int, int], None]
AT_ONCE = 1 << 20  # rows; then Ctrl-C is heard
LEAST_SHARE = 1 << 17  # rows of a thread; for fewer none is started
COST = 20.0  # nanoseconds per row
SIGN = np.uint64(1 << 63)


def by_keys_alone(spec: JoinSpec) -> bool:
    """Whether nothing but keys says which rows are partners, so that the nearest are at hand."""
    nearest = spec.nearest
    if nearest is None or nearest.direction is None or spec.distinct:
        return False
    return all(isinstance(p, Equal) for p in spec.predicates)


def nearest_in_time(
    nearest: Nearest, rows: tuple[I64, I64], times: tuple[I64, I64]
) -> tuple[I64, I64]:
    """Of pairs those that stay; rows of the second stream have numbers as they arrived.

    ``times``: of both rows of each pair
    """
    left, right = rows
    behind = times[1] <= times[0] if nearest.direction != "forward" else np.zeros(len(left), bool)
    times_left, times_right = (time.view(np.uint64) for time in times)
    distance = np.where(behind, times_left - times_right, times_right - times_left)
    cost = (distance ^ SIGN).view(np.int64)
    arrival = np.where(behind, -right, right)
    order = sorting_by([arrival, (~behind).astype(np.int64), cost, left])
    row = left[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = row[1:] != row[:-1]
    starts = np.flatnonzero(first)
    rank = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    kept = np.sort(order[rank < nearest.most])
    return left[kept], right[kept]


# -- whole tables ------------------------------------------------------------------------------


def merged(
    spec: JoinSpec, streams: Sequence[Sorted], threads: int, progress: Progress | None = None
) -> list[I64]:
    """Places in time order of the rows of all pairs that stay; by the row of the first stream."""
    codes, count = _codes(spec, streams)
    left, right = streams
    job = _Merge(spec, (left.time, right.time), codes, count, progress)
    shares = job.shares(threads)
    parts = in_threads(len(shares), job.run, shares)
    if len(parts) == 1:
        return list(parts[0])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _codes(spec: JoinSpec, streams: Sequence[Sorted]) -> tuple[list[Codes | None], int]:
    """For each side the codes of what must be equal, taken together; None: nothing must."""
    tables = [
        Table(stream, side.time, side.columns, None, 0)
        for stream, side in zip(spec.streams, streams, strict=True)
    ]
    encode_tables(spec, tables, [side.keys for side in streams])
    ends = [_ends(p) for p in spec.predicates]
    if not ends:
        return [None, None], 1
    found = [tables[s].codes[ends[0][s].key] for s in (0, 1)]
    count = tables[0].code_counts[ends[0][0].key]
    for pair in ends[1:]:
        space = KeySpace()
        found = [encode_pairs(space, found[s], tables[s].codes[pair[s].key]) for s in (0, 1)]
        count = space.n_codes
    return list(found), count


def _ends(predicate: object) -> tuple[Key, Key]:
    """The keys of the first and of the second stream."""
    assert isinstance(predicate, Equal), "an as-of merge goes by keys alone"
    pair = predicate.left, predicate.right
    return pair if pair[0].stream == 0 else (pair[1], pair[0])


class _Merge:
    """Both sides in order of time, for threads that take stretches of the first."""

    def __init__(
        self,
        spec: JoinSpec,
        times: tuple[I64, I64],
        codes: list[Codes | None],
        count: int,
        progress: Progress | None,
    ) -> None:
        assert spec.nearest is not None
        self.most, self.direction = spec.nearest.most, spec.nearest.direction
        self.times, self.codes, self.count, self.progress = times, codes, count, progress
        self.tolerances = spec.streams[1].window, spec.streams[0].window  # back, ahead
        self.done = 0

    def shares(self, threads: int) -> list[tuple[int, int]]:
        """Left rows of each thread: so many as pay, as each looks at all that its rows reach."""
        left, right = self.times
        threads = min(threads, max(1, len(left) // LEAST_SHARE))
        if self.most > 1:  # chains of what threads see twice would be written twice
            threads = 1
        cuts = [len(left) * k // threads for k in range(threads + 1)]
        twice = sum(self._before(left[cut]) + self._after(left[cut]) for cut in cuts[1:-1])
        if 2 * twice > len(right):
            cuts = [0, len(left)]
        return list(pairwise(cuts))

    def _before(self, time: int) -> int:
        begin = np.searchsorted(self.times[1], _less(time, self.tolerances[0]))
        return int(np.searchsorted(self.times[1], time) - begin)

    def _after(self, time: int) -> int:
        end = np.searchsorted(self.times[1], _more(time, self.tolerances[1]), "right")
        return int(end - np.searchsorted(self.times[1], time))

    def run(self, first: int, last: int) -> tuple[I64, I64]:
        """Pairs of some rows of the first stream."""
        merge = AsofMerge(self.times[0], self.codes[0], self.times[1], self.codes[1], self.count)
        back = ahead = before = after = None
        many = self.most > 1 and len(self.times[1]) > 0
        if self.direction != "forward":
            before = np.empty(len(self.times[1]), np.int64) if many else None
            back = self._backward(merge, first, last, before)
        if self.direction != "backward":
            after = np.empty(len(self.times[1]), np.int64) if many else None
            ahead = self._forward(merge, first, last, after)
        ways, chains = (back, ahead), (before, after)
        count = merge.pairs(first, last, self.most, ways, chains, self.tolerances)
        left, right = np.empty(count, np.int64), np.empty(count, np.int64)
        merge.pairs(first, last, self.most, ways, chains, self.tolerances, left, right)
        return left, right

    def _backward(self, merge: AsofMerge, first: int, last: int, chain: I64 | None) -> I64:
        """Of all left rows; only those of the stretch are set."""
        found = np.empty(len(self.times[0]), np.int64)
        merge.restart()
        if first < last:
            least = _less(self.times[0][first], self.tolerances[0])
            at = int(np.searchsorted(self.times[1], least))
            for begin in range(first, last, AT_ONCE):
                end = min(begin + AT_ONCE, last)
                at = merge.backward(begin, end, at, self.tolerances[0], found, chain)
                self._report(end - begin)
        return found

    def _forward(self, merge: AsofMerge, first: int, last: int, chain: I64 | None) -> I64:
        found = np.empty(len(self.times[0]), np.int64)
        strict = self.direction == "nearest"
        merge.restart()
        if first < last:
            most = _more(self.times[0][last - 1], self.tolerances[1])
            at = int(np.searchsorted(self.times[1], most, "right")) - 1
            for end in range(last, first, -AT_ONCE):
                begin = max(end - AT_ONCE, first)
                at = merge.forward(begin, end, at, self.tolerances[1], strict, found, chain)
                self._report(end - begin)
        return found

    def _report(self, rows: int) -> None:
        listen()
        self.done += rows
        if self.progress is not None:
            ways = 2 if self.direction == "nearest" else 1
            self.progress(self.done // ways, len(self.times[0]))


def _less(time: int, tolerance: int) -> int:
    return max(int(time) - tolerance, -(2**63))


def _more(time: int, tolerance: int) -> int:
    return min(int(time) + tolerance, 2**63 - 1)


# -- live rows ---------------------------------------------------------------------------------


class _Next:
    """What both accesses to the rows next in time have in common."""

    nearest: Nearest
    windows: tuple[int, int]

    def _rows(self, keyed: bool) -> Index:
        assert self.nearest.direction is not None
        back, ahead = self.nearest.direction != "forward", self.nearest.direction != "backward"
        return AsofRows(keyed, back, ahead, self.windows[1], self.windows[0], self.nearest.most)

    @property
    def why(self) -> str:
        """For explain()."""
        return "nothing but keys says who is a partner, so the nearest are at hand"


@dataclass(frozen=True)
class NextOfKey(_Next, Equality):
    """The rows of a key that are next in time to the row that asks."""

    nearest: Nearest
    windows: tuple[int, int]  # as bounds of time are made

    name: ClassVar[str] = "rows of a key next in time"

    def start(self, window: Window) -> Index:
        window.pair_spaces[self.identity] = [KeySpace() for _ in self.parts[1:]]
        return self._rows(keyed=True)


@dataclass(frozen=True)
class NextOfAll(_Next, Scan):
    """The rows that are next in time to the row that asks."""

    nearest: Nearest
    windows: tuple[int, int]

    name: ClassVar[str] = "rows next in time"

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target)

    def start(self, window: Window) -> Index:
        return self._rows(keyed=False)


def live_order(spec: JoinSpec, statistics: Statistics | None = None) -> Order:
    """How a row of the first stream finds its partners: the nearest, or all that there are."""
    if not by_keys_alone(spec):
        return hops_from(spec, statistics or unseen(spec), (0,), (1,))
    assert spec.nearest is not None
    ends = tuple(_ends(p) for p in spec.predicates)
    windows = spec.streams[0].window, spec.streams[1].window
    most = float(spec.nearest.most)
    access: NextOfKey | NextOfAll
    if ends and len({right for _, right in ends}) == len(ends) <= 8:
        access = NextOfKey(1, spec.predicates, most, COST, ends, spec.nearest, windows)
    elif ends:  # a key that two others equal, or too many of them
        return hops_from(spec, statistics or unseen(spec), (0,), (1,))
    else:
        access = NextOfAll(1, (), most, COST, 1, spec.nearest, windows)
    step = OrderHop(1, access, (), (), (), 1.0, most, COST)
    return Order(0, (step,), COST)
