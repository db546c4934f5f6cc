"""Time-sorted against identifier-sorted inverted lists under a load that has to be shed.

The right half of the published figure 9, which ``benchmarks/paper/shedding.py`` draws and judges.

Two streams of sets join where two rows share enough items within a long window.  Both kinds of
index keep the window as a ring of basic windows, each with one list per item:

* *time-sorted*: a new row is appended; a row that asks counts common items over slices of lists;
* *identifier-sorted*: a new row is put where its identifier belongs; a row that asks merges lists,
  and looks at times afterwards.

Both drop a basic window whole.  A row asks the basic windows that are worth most, as far as a
fraction of the window goes, the last one in part; some rows ask all, and tell what each is worth.
After every period the fraction is multiplied by what one could afford over what was spent, and by
1.2 at most.  Everything is compiled; time is that of the thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from shedding_streams import HALF, ITEMS, sets

Ints = NDArray[np.int64]

WINDOW_S, RATE, COMMON = 200.0, 100, 3  # seconds, rows a second of each stream, items
PERIOD_S, WARM, PERIODS = 5.0, 4, 10  # until the fraction is what it stays; then it is measured
SHARE = 0.2  # of the time that time-sorted lists take to find all there is
BOOST, SAMPLE = 1.2, 0.1
KINDS = ("time-sorted", "identifier-sorted")
NO_BASIC_WINDOWS = 400.0  # seconds, where figures have them


@dataclass(frozen=True)
class Rows:
    """One stream: times ascending, identifiers in no order, items of each row."""

    time: NDArray[np.float64]
    identifier: Ints
    items: Ints
    begin: Ints  # where the items of a row begin


def generate(seed: int, skew: float) -> list[Rows]:
    """Both streams, until the last period is over."""
    random = np.random.default_rng(seed)
    count = int(RATE * (WINDOW_S + PERIOD_S * (WARM + PERIODS)))
    made = []
    for shift in (0.0, WINDOW_S * 5 / 4):
        times = np.arange(count) / RATE
        found = sets(random, times * 1000, skew, 2 * WINDOW_S, shift)
        bits = np.concatenate(
            [found[half][:, None] >> np.arange(HALF) & 1 for half in ("low", "high")], axis=1
        )
        rows, items = np.nonzero(bits)
        begin = np.searchsorted(rows, np.arange(count + 1))
        made.append(Rows(times, random.permutation(count), items, begin))
    return made


class Index:
    """The ring of basic windows of one stream: for each, one list of rows per item."""

    def __init__(self, rows: Rows, length: float) -> None:
        basic = (rows.time // length).astype(np.int64)
        counts = np.zeros((int(basic[-1]) + 1, ITEMS), np.int64)
        np.add.at(counts, (np.repeat(basic, np.diff(rows.begin)), rows.items), 1)
        offset = np.concatenate([[0], np.cumsum(counts.max(axis=0))])  # room enough, none moves
        windows = int(np.ceil(WINDOW_S / length)) + 1
        self.windows = windows
        self.arrays = (
            rows.time,
            np.searchsorted(basic, np.arange(int(basic[-1]) + 2)),  # first row of basic windows
            rows.identifier,
            rows.items,
            rows.begin,
            offset,
            np.zeros((windows, int(offset[-1]) + 1), np.int64),  # lists of rows
            np.zeros((windows, int(offset[-1]) + 1), np.int64),  # their identifiers
            np.zeros((windows, ITEMS), np.int64),  # their lengths
            np.full(windows, -1, np.int64),  # which basic window is there
            np.zeros(int(np.bincount(basic).max()) + 1, np.uint8),  # common items, of each row
        )


@njit(cache=True)
def _insert(row, basic, by_time, of):  # type: ignore[no-untyped-def]
    _, _, identifier, items, begin, offset, lists, keys, length, number, _ = of
    at = basic % number.shape[0]
    if number[at] != basic:  # the oldest basic window is dropped whole
        number[at] = basic
        length[at, :] = 0
    for item in items[begin[row] : begin[row + 1]]:
        first, n = offset[item], length[at, item]
        place = first + n
        if not by_time:
            place = first + np.searchsorted(keys[at, first : first + n], identifier[row])
            for k in range(first + n, place, -1):
                lists[at, k] = lists[at, k - 1]
                keys[at, k] = keys[at, k - 1]
            keys[at, place] = identifier[row]
        lists[at, place] = row
        length[at, item] = n + 1


@njit(cache=True)
def _count(at, items, first_row, low, of):  # type: ignore[no-untyped-def]
    """Rows from ``low`` on that share COMMON items: a count per row of the basic window."""
    _, _, _, _, _, offset, lists, _, length, _, seen = of
    found = 0
    top = 0
    for item in items:
        first, n = offset[item], length[at, item]
        left, right = 0, n
        while left < right:
            middle = (left + right) // 2
            if lists[at, first + middle] < low:
                left = middle + 1
            else:
                right = middle
        for k in range(left, n):
            row = lists[at, first + k]
            seen[row - first_row] += 1
            found += seen[row - first_row] == COMMON
        if n:
            top = max(top, lists[at, first + n - 1] - first_row + 1)
    seen[:top] = 0
    return found


@njit(cache=True)
def _merge(at, items, low, of):  # type: ignore[no-untyped-def]
    """The same by merging lists in order of identifiers; times are looked at afterwards."""
    _, _, _, _, _, offset, lists, keys, length, _, _ = of
    nothing = np.iinfo(np.int64).max
    many = len(items)
    place, stop, head = np.empty(many, np.int64), np.empty(many, np.int64), np.empty(many, np.int64)
    for k in range(many):
        place[k] = offset[items[k]]
        stop[k] = place[k] + length[at, items[k]]
        head[k] = keys[at, place[k]] if place[k] < stop[k] else nothing
    found = 0
    while True:
        least = nothing
        for k in range(many):
            least = min(least, head[k])
        if least == nothing:
            return found
        common = row = 0
        for k in range(many):
            if head[k] == least:
                row = lists[at, place[k]]
                common += 1
                place[k] += 1
                head[k] = keys[at, place[k]] if place[k] < stop[k] else nothing
        found += common >= COMMON and row >= low


@njit(cache=True)
def _ask(items, now, length, order, fraction, full, by_time, of, worth):  # type: ignore[no-untyped-def]
    """Results among the worthiest basic windows, the last in part; ``full``: all, and learn."""
    time, first, number = of[0], of[1], of[9]
    total = 0
    oldest = np.searchsorted(time, now - WINDOW_S)
    newest = np.searchsorted(time, now + 1e-9)
    current = np.int64(now // length)
    left = newest - oldest if full else np.int64(fraction * (newest - oldest))
    for k in range(len(order)):
        basic = current - order[k]
        at = basic % number.shape[0]
        if basic < 0 or number[at] != basic:
            continue
        low, past = max(first[basic], oldest), min(first[basic + 1], newest)
        if past <= low:
            continue
        if left <= 0:
            break
        low = max(low, past - left)
        left -= past - low
        found = _count(at, items, first[basic], low, of) if by_time else _merge(at, items, low, of)
        total += found
        if full:
            worth[order[k]] += found
    return total


@njit(cache=True)
def _work(  # type: ignore[no-untyped-def]
    begin, end, length, orders, fraction, drawn, by_time, sides, worth
):
    """Rows [begin, end) of both streams, in turn: ask the other window, then enter one's own."""
    total = 0
    for row in range(begin, end):
        for k in range(2):
            own, other = sides[k], sides[1 - k]
            time, items, start = own[0], own[3], own[4]
            of_row = items[start[row] : start[row + 1]]
            full = drawn[k, row] < fraction * SAMPLE
            if fraction > 0:
                total += _ask(
                    of_row, time[row], length, orders[k], fraction, full, by_time, other, worth[k]
                )
            _insert(row, np.int64(time[row] // length), by_time, own)
    return total


class Run:
    """Both windows, what their basic windows are worth, and the fraction that is asked."""

    def __init__(self, sides: Sequence[Rows], kind: str, length: float, seed: int) -> None:
        self.by_time, self.length, self.learns = kind == KINDS[0], length, length < WINDOW_S
        indexes = [Index(rows, length) for rows in sides]
        self.arrays = tuple(index.arrays for index in indexes)
        self.orders = np.tile(np.arange(indexes[0].windows), (2, 1))  # the newest first
        self.worth = np.zeros(self.orders.shape)
        self.drawn = np.random.default_rng(seed).random((2, len(sides[0].time)))
        self.work(0, int(RATE * WINDOW_S), 0.0)  # nobody asks until windows are full

    def work(self, begin: int, end: int, fraction: float) -> tuple[float, int]:
        """Seconds that rows [begin, end) of both streams take, and results."""
        start = time.thread_time()
        found = _work(
            begin, end, self.length, self.orders, fraction, self.drawn, self.by_time, self.arrays,
            self.worth,
        )  # fmt: skip
        return time.thread_time() - start, int(found)

    def adapt(self) -> None:
        """Basic windows by what those who asked all found there; half of it is kept."""
        if self.learns:
            self.orders = np.argsort(-self.worth, axis=1, kind="stable")
        self.worth /= 2

    def shed(self, budget: float) -> tuple[float, float]:
        """Results a second when there is ``budget`` for a period, and the fraction in the end."""
        each, first = int(RATE * PERIOD_S), int(RATE * WINDOW_S)
        fraction, results = 1.0, 0
        for period in range(WARM + PERIODS):
            taken, found = self.work(first + period * each, first + (period + 1) * each, fraction)
            results += found if period >= WARM else 0
            fraction = min(1.0, fraction * min(budget / taken, BOOST))
            self.adapt()
        return results / (PERIODS * PERIOD_S), fraction


def seconds_for_all(sides: Sequence[Rows], seed: int) -> float:
    """What a period takes time-sorted lists when nothing is shed.

    `SystemExit` if the other index finds something else.
    """
    first, each = int(RATE * WINDOW_S), int(RATE * PERIOD_S)
    runs = [Run(sides, kind, 20.0, seed) for kind in KINDS]
    (taken, found), (_, other) = (run.work(first, first + each, 1.0) for run in runs)
    if found != other:
        raise SystemExit(f"the indexes find {found} and {other} results")
    return min(taken, runs[0].work(first + each, first + 2 * each, 1.0)[0])


LENGTHS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, WINDOW_S)  # of basic windows; the last: none


def indexed_window_sizes(seed: int) -> dict[str, Any]:
    """Figure 9, with an index: results by the length of basic windows."""
    series: dict[str, list[list[float]]] = {}
    for skew in (0.6, 0.8):
        sides = generate(seed, skew)
        seconds_for_all(sides, seed)  # compiles, and finds the caches cold
        budget = SHARE * seconds_for_all(sides, seed)
        for kind in KINDS:
            for length in LENGTHS:
                found, _ = Run(sides, kind, length, seed).shed(budget)
                at = NO_BASIC_WINDOWS if length == WINDOW_S else length
                series.setdefault(f"{kind}, kappa {skew}", []).append([at, found])
    labels = {"x": f"basic window, s ({NO_BASIC_WINDOWS:g}: none)", "y": "results/s"}
    return {"shedding-9-indexed": {**labels, "series": series}}
