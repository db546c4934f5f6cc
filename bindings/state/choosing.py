"""Which rows leave memory: of whole partition groups, or the oldest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from windjoin.kernels.spec import I64

NOTED = 256  # rows of a push that are noted, about
MOST_NOTED = 1 << 17
MORE = 0.1  # of the results than half of them, at least, of the better half of the groups
CHANCE = 1.5  # times the root of how many there are, else it is chance: thrice what is usual
Alive = Sequence[tuple[I64, I64]]  # by stream, numbers and times of rows


Masks = list[NDArray[np.bool_]]  # by stream, which of some rows


class Counted:
    """Results of every group, of late more than of old."""

    def __init__(self, groups: int) -> None:
        self.results = np.zeros(groups)
        self._noted: list[I64] = []
        self._rows = self._results = 0

    def note(self, rows: I64) -> None:
        """Rows of the first stream in results, by number; few of them are kept."""
        self._results += len(rows)
        if self._rows < MOST_NOTED:
            some = np.ascontiguousarray(rows[:: max(len(rows) // NOTED, 1)])
            self._noted.append(some)
            self._rows += len(some)

    def taken(self, head: int) -> tuple[I64, float]:
        """Rows that are still there of those noted since the last time; results for each."""
        rows = np.concatenate([np.empty(0, np.int64), *self._noted])
        each = self._results / max(len(rows), 1)
        self._noted, self._rows, self._results = [], 0, 0
        return rows[rows >= head], each

    def concentrated(self, groups_of: Callable[[I64], I64], head: int) -> bool:
        """Whether half of the groups have most of what was noted since the last time.

        Results of every other row tell which half, those of the rest how many it has: of so few
        that it is chance who has any, half.
        """
        rows = np.concatenate([np.empty(0, np.int64), *self._noted])
        rows = rows[rows >= head]
        groups, count = groups_of(rows), len(self.results)
        told, rest = (np.bincount(groups[rows % 2 == k], minlength=count) for k in (0, 1))
        best, of = np.argsort(-told, kind="stable")[: count // 2], int(rest.sum())
        return bool(rest[best].sum() > of / 2 + max(MORE * of, CHANCE * of**0.5))

    def add(self, groups: I64, each: float) -> None:
        """Results of some groups, each standing for so many."""
        self.results += each * np.bincount(groups, minlength=len(self.results))


@dataclass(frozen=True, slots=True)
class Policy:
    """How much goes, and which first; ``idle`` in ticks; ``may``: groups that may go, None: all."""

    choose: str
    share: float
    idle: int | None = None
    may: NDArray[np.bool_] | None = None


def chosen_groups(
    alive: Alive, groups: Sequence[I64], policy: Policy, counted: Counted, random: Generator
) -> Masks:
    """Whole groups: the idle ones first, then those with few results for their size."""
    count = len(counted.results)
    size = np.zeros(count, np.int64)
    newest = np.full(count, np.iinfo(np.int64).min)
    for (_, times), of in zip(alive, groups, strict=True):
        size += np.bincount(of, minlength=count)
        if policy.idle is not None:
            np.maximum.at(newest, of, times)
    if policy.may is not None:
        size[~policy.may] = 0
    there = np.flatnonzero(size)
    worth = size[there] / (counted.results[there] + 1.0)
    orders = {"largest": -size[there], "throughput": -worth, "productive": worth}
    if policy.choose == "random":
        order = random.permutation(there)
    else:
        order = there[np.argsort(orders[policy.choose], kind="stable")]
    if policy.idle is not None and len(there):
        quiet = newest[order] < int(newest[there].max()) - policy.idle
        order = np.concatenate([order[quiet], order[~quiet]])
    counted.results[there] *= 0.5
    wanted = int(np.ceil(policy.share * size.sum()))
    last = int(np.searchsorted(np.cumsum(size[order]), wanted)) + 1
    goes = np.zeros(count, np.bool_)
    goes[order[:last]] = True
    return [goes[of] for of in groups]


def oldest(alive: Alive, policy: Policy, random: Generator) -> Masks:
    """The rows of the earliest times, or, if asked for, any."""
    times = np.concatenate([times for _, times in alive])
    if policy.choose == "random" or not len(times):
        return [random.random(len(rows)) < policy.share for rows, _ in alive]
    at = min(max(int(np.ceil(policy.share * len(times))) - 1, 0), len(times) - 1)
    cut = np.partition(times, at)[at]
    return [times <= cut for _, times in alive]
