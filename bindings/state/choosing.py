"""Which rows leave memory: of whole partition groups, or the oldest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from windjoin.kernels.spec import I64
from windjoin.memory import Memory

NOTED = 256  # rows of a push that are noted, about
MOST_NOTED = 1 << 17
Alive = Sequence[tuple[I64, I64]]  # by stream, numbers and times of rows


@dataclass(frozen=True, slots=True)
class Choice:
    """Numbers of the rows of every stream that go, and of those that stay."""

    going: list[I64]
    kept: list[I64]


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

    def add(self, groups: I64, each: float) -> None:
        """Results of some groups, each standing for so many."""
        self.results += each * np.bincount(groups, minlength=len(self.results))


def chosen_groups(
    alive: Alive,
    groups: Sequence[I64],
    asked: Memory,
    idle: int | None,
    counted: Counted,
    random: Generator,
) -> Choice:
    """Whole groups: the idle ones first, then those with few results for their size."""
    size = np.zeros(asked.groups, np.int64)
    newest = np.full(asked.groups, np.iinfo(np.int64).min)
    for (_, times), of in zip(alive, groups, strict=True):
        size += np.bincount(of, minlength=asked.groups)
        np.maximum.at(newest, of, times)
    there = np.flatnonzero(size)
    if asked.choose == "random":
        order = random.permutation(there)
    elif asked.choose == "largest":
        order = there[np.argsort(-size[there], kind="stable")]
    else:
        worth = size[there] / (counted.results[there] + 1.0)
        order = there[np.argsort(-worth, kind="stable")]
    if idle is not None and len(there):
        quiet = newest[order] < int(newest[there].max()) - idle
        order = np.concatenate([order[quiet], order[~quiet]])
    counted.results *= 0.5
    wanted = int(np.ceil(asked.share * size.sum()))
    last = int(np.searchsorted(np.cumsum(size[order]), wanted)) + 1
    goes = np.zeros(asked.groups, np.bool_)
    goes[order[:last]] = True
    return _divided(alive, [goes[of] for of in groups])


def oldest(alive: Alive, asked: Memory, random: Generator) -> Choice:
    """The rows of the earliest times, or, if asked for, any."""
    times = np.concatenate([times for _, times in alive])
    if not len(times):
        return Choice([], [])
    if asked.choose == "random":
        return _divided(alive, [random.random(len(rows)) < asked.share for rows, _ in alive])
    at = min(max(int(np.ceil(asked.share * len(times))) - 1, 0), len(times) - 1)
    cut = np.partition(times, at)[at]
    return _divided(alive, [times <= cut for _, times in alive])


def _divided(alive: Alive, going: Sequence[NDArray[np.bool_]]) -> Choice:
    return Choice(
        [rows[mask] for (rows, _), mask in zip(alive, going, strict=True)],
        [rows[~mask] for (rows, _), mask in zip(alive, going, strict=True)],
    )
