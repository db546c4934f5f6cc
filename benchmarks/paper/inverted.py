"""Time-sorted against identifier-sorted inverted lists, under a load that has to be shed.

    python benchmarks/paper/inverted.py [--out benchmarks/paper/results]

Two streams of sets join where two rows share enough items within a window.  Both kinds of index
keep the window as a ring of basic windows, each with one list per item:

* *time-sorted*: a new row is appended; a row that asks counts common items over slices of lists;
* *identifier-sorted*: a new row is put where its identifier belongs; a row that asks merges lists,
  and looks at times afterwards.

Both drop a basic window whole.  When rows come faster than they can be processed, each is compared
with the newest part of the window only: a fraction that is multiplied, after every period, by
what one could afford over what was spent, and by 1.2 at most.  Everything is compiled; time is that
of the thread.  Before anything is timed, both must find the same results.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

WINDOW_S, BASIC_S = 20.0, 2.0
ITEMS, SIZE, COMMON = 400, 8, 3
PERIOD_S, PERIODS, WARM = 2.0, 30, 15
RATES = (250, 500, 1000, 1500, 2000, 3000)  # rows per second, of each stream
SHARE = 0.02  # of a core, that the join has
BOOST = 1.2
KINDS = ("time-sorted", "identifier-sorted")


@dataclass(frozen=True)
class Rows:
    """One stream: times ascending, identifiers in no order, SIZE items each."""

    time: NDArray[np.float64]
    identifier: Ints
    items: Ints  # (rows, SIZE)


def generate(seed: int, rate: float, seconds: float) -> Rows:
    """Items are the more popular the lower their number."""
    random = np.random.default_rng(seed)
    count = int(rate * seconds)
    items = np.empty((count, SIZE), np.int64)
    for row in range(count):
        drawn = np.unique((ITEMS * random.random(3 * SIZE) ** 1.5).astype(np.int64))
        items[row] = np.sort(random.permutation(drawn)[:SIZE])
    return Rows(np.arange(count) / rate, random.permutation(count), items)


class Index:
    """The ring of basic windows of one stream: for each, one list of rows per item."""

    def __init__(self, rows: Rows) -> None:
        basic = (rows.time // BASIC_S).astype(np.int64)
        counts = np.zeros((int(basic[-1]) + 1, ITEMS), np.int64)
        np.add.at(counts, (np.repeat(basic, SIZE), rows.items.ravel()), 1)
        offset = np.concatenate([[0], np.cumsum(counts.max(axis=0))])  # room enough, none moves
        windows = int(np.ceil(WINDOW_S / BASIC_S)) + 1
        self.arrays = (
            rows.time,
            np.searchsorted(basic, np.arange(int(basic[-1]) + 2)),  # first row of basic windows
            rows.identifier,
            rows.items,
            offset,
            np.zeros((windows, int(offset[-1]) + 1), np.int64),  # lists of rows
            np.zeros((windows, int(offset[-1]) + 1), np.int64),  # their identifiers
            np.zeros((windows, ITEMS), np.int64),  # their lengths
            np.full(windows, -1, np.int64),  # which basic window is there
            np.zeros(int(np.bincount(basic).max()) + 1, np.uint8),  # common items, of each row
        )


@njit(cache=True)
def _insert(  # type: ignore[no-untyped-def]
    row, basic, items, identifier, by_time, offset, lists, keys, length, number
):
    at = basic % number.shape[0]
    if number[at] != basic:  # the oldest basic window is dropped whole
        number[at] = basic
        length[at, :] = 0
    for item in items[row]:
        begin, n = offset[item], length[at, item]
        place = begin + n
        if not by_time:
            place = begin + np.searchsorted(keys[at, begin : begin + n], identifier)
            for k in range(begin + n, place, -1):
                lists[at, k] = lists[at, k - 1]
                keys[at, k] = keys[at, k - 1]
            keys[at, place] = identifier
        lists[at, place] = row
        length[at, item] = n + 1


@njit(cache=True)
def _count(at, items, first_row, low, offset, lists, length, seen, out):  # type: ignore[no-untyped-def]
    """Rows from ``low`` on that share COMMON items: a count per row of the basic window."""
    found = 0
    top = 0
    for item in items:
        begin, n = offset[item], length[at, item]
        left, right = 0, n
        while left < right:
            middle = (left + right) // 2
            if lists[at, begin + middle] < low:
                left = middle + 1
            else:
                right = middle
        for k in range(left, n):
            row = lists[at, begin + k]
            seen[row - first_row] += 1
            if seen[row - first_row] == COMMON:
                out[found] = row
                found += 1
        if n and lists[at, begin + n - 1] - first_row + 1 > top:
            top = lists[at, begin + n - 1] - first_row + 1
    seen[:top] = 0
    return found


@njit(cache=True)
def _merge(at, items, low, offset, lists, keys, length, out):  # type: ignore[no-untyped-def]
    """The same by merging lists in order of identifiers; times are looked at afterwards."""
    nothing = np.iinfo(np.int64).max
    place, stop, head = np.empty(SIZE, np.int64), np.empty(SIZE, np.int64), np.empty(SIZE, np.int64)
    for k in range(SIZE):
        place[k] = offset[items[k]]
        stop[k] = place[k] + length[at, items[k]]
        head[k] = keys[at, place[k]] if place[k] < stop[k] else nothing
    found = 0
    while True:
        least = nothing
        for k in range(SIZE):
            least = min(least, head[k])
        if least == nothing:
            return found
        common = row = 0
        for k in range(SIZE):
            if head[k] == least:
                row = lists[at, place[k]]
                common += 1
                place[k] += 1
                head[k] = keys[at, place[k]] if place[k] < stop[k] else nothing
        if common >= COMMON and row >= low:
            out[found] = row
            found += 1


@njit(cache=True)
def _probe(items, low, newest, by_time, of, out):  # type: ignore[no-untyped-def]
    _, first, _, _, offset, lists, keys, length, number, seen = of
    found, total, check = 0, 0, 0
    for at in range(number.shape[0]):
        basic = number[at]
        if basic < 0 or first[basic + 1] <= low or basic > newest:
            continue
        if by_time:
            found = _count(at, items, first[basic], low, offset, lists, length, seen, out)
        else:
            found = _merge(at, items, low, offset, lists, keys, length, out)
        total += found
        for k in range(found):
            check += out[k] * 2654435761 % 1000003
    return total, check


@njit(cache=True)
def _work(begin, end, fraction, by_time, sides, result):  # type: ignore[no-untyped-def]
    """Rows [begin, end) of both streams, in turn: ask the other window, then enter one's own."""
    out = np.empty(sides[0][9].shape[0] + sides[1][9].shape[0], np.int64)
    for row in range(begin, end):
        for own, other in (sides, sides[::-1]):
            time, _, identifier, items, offset, lists, keys, length, number, _ = own
            basic = np.int64(time[row] // BASIC_S)
            low = np.searchsorted(other[0], time[row] - fraction * WINDOW_S)
            found, check = _probe(items[row], low, basic, by_time, other, out)
            result[0] += found
            result[1] += check * (row + 1) % 1000003
            _insert(
                row, basic, items, identifier[row], by_time, offset, lists, keys, length, number
            )


class Run:
    """Both windows, and how much of them rows are compared with."""

    def __init__(self, sides: Sequence[Rows], kind: str) -> None:
        self.by_time = kind == KINDS[0]
        self.indexes = [Index(rows) for rows in sides]
        self.arrays = tuple(index.arrays for index in self.indexes)
        self.result = np.zeros(2, np.int64)  # how many, checksum

    def work(self, begin: int, end: int, fraction: float) -> float:
        """Seconds that rows [begin, end) of both streams take."""
        start = time.thread_time()
        _work(begin, end, fraction, self.by_time, self.arrays, self.result)
        return time.thread_time() - start


def under_load(rate: int, kind: str) -> dict[str, float]:
    """Results per second, and the fraction of the window, when a SHARE of the core is there."""
    sides = [generate(seed, rate, PERIOD_S * PERIODS) for seed in (1, 2)]
    run = Run(sides, kind)
    fraction, fractions, results, spent = 1.0, [], 0, 0.0
    each = int(rate * PERIOD_S)
    for period in range(PERIODS):
        before = run.result[0]
        taken = run.work(period * each, (period + 1) * each, fraction)
        if period >= WARM:
            fractions.append(fraction)
            results += int(run.result[0] - before)
            spent += taken
        afford = SHARE * PERIOD_S / taken
        fraction = fraction * afford if afford < 1 else min(1.0, BOOST * fraction)
    seconds = PERIOD_S * (PERIODS - WARM)
    return {
        "rate": rate, "results": results / seconds, "fraction": float(np.mean(fractions)),
        "core": spent / seconds,
    }  # fmt: skip


def unshed(rate: int) -> dict[str, float]:
    """Microseconds per row when nothing is shed; `SystemExit` if the results differ."""
    sides = [generate(seed, rate, PERIOD_S * PERIODS) for seed in (1, 2)]
    taken, found = {}, set()
    for kind in KINDS:
        run = Run(sides, kind)
        rows = len(sides[0].time)
        run.work(0, rows // 2, 1.0)
        taken[kind] = run.work(rows // 2, rows, 1.0) / rows * 1e6
        found.add(tuple(run.result.tolist()))
    if len(found) > 1:
        raise SystemExit(f"{rate} rows/s: the indexes find {found}")
    return taken


def markdown(costs: dict[int, dict[str, float]], series: dict[str, list[dict[str, float]]]) -> str:
    """Write both tables."""
    lines = [
        "| rows/s of each stream | " + " | ".join(f"{k}, us a row" for k in KINDS) + " | ratio |"
    ]
    lines.append("| ---: | ---: | ---: | ---: |")
    for rate, taken in costs.items():
        fast, slow = (taken[kind] for kind in KINDS)
        lines.append(f"| {rate} | {fast:.1f} | {slow:.1f} | {slow / fast:.1f} |")
    lines += ["", f"With {SHARE:.0%} of a core:", ""]
    lines.append(
        "| rows/s | " + " | ".join(f"{k}: results/s | of the window" for k in KINDS) + " |"
    )
    lines.append("| ---: | ---: | ---: | ---: | ---: |")
    for first, second in zip(*series.values(), strict=True):
        parts = (f"{x['results']:,.0f} | {x['fraction']:.0%}" for x in (first, second))
        lines.append(f"| {first['rate']:.0f} | {' | '.join(parts)} |")
    return "\n".join([*lines, ""])


def draw(series: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Results per second over the load."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plot, axes = pyplot.subplots(figsize=(6, 3.6))
    for kind, points in series.items():
        axes.plot(
            [x["rate"] for x in points], [x["results"] for x in points], marker=".", label=kind
        )
    axes.set_xlabel("rows per second of each stream")
    axes.set_ylabel("results per second")
    axes.legend(fontsize="small")
    plot.tight_layout()
    plot.savefig(path, dpi=90)
    pyplot.close(plot)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, measure, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    unshed(50)  # compiles
    costs = {rate: unshed(rate) for rate in RATES[:3]}
    series: dict[str, list[dict[str, Any]]] = {
        kind: [under_load(rate, kind) for rate in RATES] for kind in KINDS
    }
    text = markdown(costs, series)
    (options.out / "inverted.md").write_text(text, "utf-8")
    (options.out / "inverted.json").write_text(json.dumps({"costs": costs, "load": series}) + "\n")
    draw(series, options.out / "inverted.png")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
