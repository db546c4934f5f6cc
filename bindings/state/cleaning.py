"""What rows that were apart owe each other: the clean-up of generations.

Every row is in memory from the epoch in which it arrives to that after which it leaves, so it has a
stretch of epochs.  A combination was found when its last row arrived if all others were there then:
if the latest arrival is not after the first departure.  Else it is owed.  Of partition groups that
left again and again these are the cross terms of the generations, of the whole of them less what
each has produced by itself.

A clean-up goes over results of a stretch of time.  It joins parts of what there is, each as large
as fits: groups together or one by one, within a group stretches of time of every stream, those that
can reach each other.  Every combination lies in one such load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from windjoin.kernels import batch
from windjoin.kernels.spec import I64, JoinSpec
from windjoin.kernels.window import LONG_AGO
from windjoin.kinds import INT64_MAX
from windjoin.state.generations import RESIDENT, Part, Slice, loaded, size_of

MOST_RESULTS = 1 << 20  # of one load; if there are more, the next are smaller
LEAST_ROWS = 64  # of a load, however little memory there is

Fetching = Callable[[Callable[[int, I64], I64]], JoinSpec]


@dataclass(slots=True)
class Owed:
    """Results of a load: arrival numbers by stream, then scores; and how many rows were joined."""

    found: list[Any]
    rows: int


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Which owed results are wanted: low <= T < high, completed after epoch ``after``."""

    low: int
    high: int  # INT64_MAX: no end
    after: int


class Cleaning:
    """The loads of one clean-up, one after the other.

    spec_with: the query's spec for rows of which a function gives arrival numbers
    epoch_of: epochs in which rows of a stream were joined, by arrival numbers and times
    budget: rows that are joined at a time
    skip: loads that another has done, in the same order
    """

    def __init__(
        self,
        spec_with: Fetching,
        parts: Sequence[Part],
        epoch_of: Callable[[int, I64, I64], I64],
        stretch: TimeRange,
        budget: int,
        skip: int = 0,
    ) -> None:
        self._spec_with, self._epoch_of = spec_with, epoch_of
        self.stretch, self.budget = stretch, max(budget, LEAST_ROWS)
        self._spec = spec_with(lambda stream, rows: rows)
        self._plan: batch.JoinRun | None = None  # of the last load, which are much alike
        self.done = self.joined = 0
        self._arrived = {  # the last of the rows of each block, by its place in memory
            id(one.block): int(epoch_of(number, *map(np.atleast_1d, one.block.last))[0])
            for number, part in enumerate(parts)
            for one in part
        }
        self.rows = sum(map(size_of, parts))
        self._loads = self._split(list(parts))
        for _ in range(skip):
            next(self._loads)
            self.done += 1

    def __iter__(self) -> Iterator[Owed]:
        return self

    def __next__(self) -> Owed:
        parts = next(self._loads)
        self.done += 1
        self.joined += sum(map(size_of, parts))
        return self._join(parts)

    # -- loads ---------------------------------------------------------------------------------

    def _split(self, parts: list[Part]) -> Iterator[list[Part]]:
        parts = [[one for one in part if len(one)] for part in parts]
        if not all(parts) or not self._may_owe(parts):
            return
        if sum(map(size_of, parts)) <= self.budget:
            yield parts
            return
        halves = self._by_group(parts) or self._by_time(parts)
        if halves is None:
            yield parts
            return
        for half in halves:
            yield from self._split(half)

    def _may_owe(self, parts: list[Part]) -> bool:
        """Whether some rows left before others arrived."""
        left = min(one.block.left for part in parts for one in part)
        if left == RESIDENT:
            return False
        arrived = max(self._arrived[id(one.block)] for part in parts for one in part)
        return arrived > left and arrived > self.stretch.after

    def _by_group(self, parts: list[Part]) -> list[list[Part]] | None:
        """As many groups at a time as fit."""
        of_slices = [one.group for part in parts for one in part]
        first = min(int(group[0]) for group in of_slices)
        count = max(int(group[-1]) for group in of_slices) + 1 - first
        if count < 2:
            return None
        rows = np.zeros(count, np.int64)
        for group in of_slices:
            rows += np.bincount(group - first, minlength=count)
        cuts = first + _cuts(rows, self.budget)
        divided = [[one.cut(cuts) for one in part] for part in parts]
        return [
            [[pieces[load] for pieces in part if len(pieces[load])] for part in divided]
            for load in range(len(cuts) - 1)
        ]

    def _by_time(self, parts: list[Part]) -> list[list[Part]] | None:
        """The largest part in two; of the others what can reach each."""
        number = max(range(len(parts)), key=lambda k: size_of(parts[k]))
        times = np.concatenate([one.time for one in parts[number]])
        low, high = int(times.min()), int(times.max())
        if low == high:
            return None
        middle = int(np.partition(times, (len(times) - 1) // 2)[(len(times) - 1) // 2])
        middle = min(middle, high - 1)
        return [
            self._reaching(parts, number, *ends) for ends in ((low, middle), (middle + 1, high))
        ]

    def _reaching(self, parts: list[Part], number: int, low: int, high: int) -> list[Part]:
        latest = high + self._spec.streams[number].window
        found = []
        for k, part in enumerate(parts):
            earliest = low - self._spec.streams[k].window
            ends = (low, high) if k == number else (earliest, latest)
            ends = max(ends[0], LONG_AGO), min(ends[1], INT64_MAX)
            found.append(_between(part, *ends))
        return found

    # -- joins ---------------------------------------------------------------------------------

    def _join(self, parts: list[Part]) -> Owed:
        rows = [loaded(spec, part) for spec, part in zip(self._spec.streams, parts, strict=True)]
        arrivals = [np.concatenate([one.row for one in part]) for part in parts]
        # rows are told apart by their arrival numbers, which only these have
        spec = replace(self._spec_with(lambda stream, at: arrivals[stream][at]), distinct=())
        found, self._plan, scores = batch.join_rows(spec, rows, before=self._plan)
        if len(found[0]) > MOST_RESULTS:
            self.budget = max(self.budget // 2, LEAST_ROWS)
        left = [
            np.repeat([one.block.left for one in part], [len(one) for one in part])
            for part in parts
        ]
        owed = self._owed(found, [one.time for one in rows], arrivals, left)
        found = [column[owed] for column in found]
        members = [numbers[at] for numbers, at in zip(arrivals, found, strict=True)]
        return Owed([*members, *scores.of(found)], sum(map(len, rows)))

    def _owed(
        self, found: list[I64], times: list[I64], arrivals: list[I64], left: list[I64]
    ) -> Any:
        """Which results nobody has had."""
        stretch = self.stretch
        latest, arrived, departed = (np.zeros(0, np.int64) for _ in range(3))
        for number, at in enumerate(found):
            time = times[number][at]
            epoch = self._epoch_of(number, arrivals[number], times[number])[at]
            gone = left[number][at]
            if number == 0:
                latest, arrived, departed = time, epoch, gone
            else:
                latest = np.maximum(latest, time)
                arrived = np.maximum(arrived, epoch)
                departed = np.minimum(departed, gone)
        owed = (arrived > departed) & (arrived > stretch.after) & (latest >= stretch.low)
        if stretch.high != INT64_MAX:
            owed &= latest < stretch.high
        for a, b in self._spec.distinct:
            owed &= arrivals[a][found[a]] != arrivals[b][found[b]]
        return np.flatnonzero(owed)


def _cuts(rows: I64, most: int) -> I64:
    """Where stretches of groups begin, of so many rows each, that have no more than ``most``.

    >>> _cuts(np.array([3, 4, 1, 9, 1]), 8).tolist()
    [0, 3, 4, 5]
    """
    cuts, sums = [0], np.cumsum(rows)
    while cuts[-1] < len(rows):
        before = int(sums[cuts[-1] - 1]) if cuts[-1] else 0
        fit = int(np.searchsorted(sums, before + most, "right"))
        cuts.append(max(fit, cuts[-1] + 1))
    return np.array(cuts)


def _between(part: Part, low: int, high: int) -> list[Slice]:
    return [one.between(low, high) for one in part]


def within(part: Part, low: int, high: int) -> Part:
    """The slices of a part that have rows with low <= time <= high, whole."""
    return [
        one for one in part if len(one) and one.block.last[1] >= low and one.block.first <= high
    ]
