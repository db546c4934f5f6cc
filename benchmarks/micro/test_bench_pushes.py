"""Continuous equality and band: rows per push.  The baselines keep lists in Python."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from benchmarks.micro.rows import SPACING
from benchmarks.pushes import Batch, endless
from benchmarks.queries import join

KEYS, WINDOW = 10_000, 10_000_000
Pushes = list[tuple[str, Batch]]


def windjoin(pushes: Pushes) -> int:
    """Push all batches through one session."""
    with join("equality", 2, WINDOW).open(rows_only=True) as session:
        return sum(len(session.push(name, columns)["a"]) for name, columns in pushes)


def python(pushes: Pushes) -> int:
    """Do what one would write without a library: per key the times, searched and never expired."""
    state: dict[str, defaultdict[int, list[int]]] = {n: defaultdict(list) for n in "ab"}
    results = 0
    for name, columns in pushes:
        mine, others = state[name], state["b" if name == "a" else "a"]
        for ts, key in zip(columns["ts"].tolist(), columns["k"].tolist(), strict=True):
            times = others[key]
            # a batch of the other stream may lie ahead: both ends of the window count
            results += bisect_left(times, ts + WINDOW + 1) - bisect_left(times, ts - WINDOW)
            mine[key].append(ts)
    return results


@pytest.mark.parametrize("batch", [1, 64, 1024, 16_384])
@pytest.mark.parametrize("engine", [windjoin, python])
def test_rows_per_push(benchmark: Any, engine: Callable[[Pushes], int], batch: int) -> None:
    # the same rows in every group: two windows to fill up, and as much again
    rows = 4 * WINDOW // SPACING
    pushes = list(islice(endless(batch, KEYS), 2 * -(-rows // batch)))
    benchmark.group = f"pushes of {batch} rows"
    results = benchmark.pedantic(engine, (pushes,), rounds=3, warmup_rounds=1)
    assert results == python(pushes)
    benchmark.extra_info["results"] = results
    benchmark.extra_info["rows"] = batch * len(pushes)
    benchmark.extra_info["ns_per_row"] = benchmark.stats["min"] / (batch * len(pushes)) * 1e9
    benchmark.extra_info["bytes"] = 16 * results


REACH = 0.001
RARE = 4  # pushes of the band hold a quarter of the rows: insertion into Python lists is slow


def windjoin_band(pushes: Pushes) -> int:
    """Push all batches through one session."""
    with join("band", 2, WINDOW, REACH).open(rows_only=True) as session:
        return sum(len(session.push(name, columns)["a"]) for name, columns in pushes)


def python_band(pushes: Pushes) -> int:
    """Do what one would write without a library: values in order, never expired."""
    state: dict[str, list[tuple[float, int]]] = {n: [] for n in "ab"}
    results = 0
    for name, columns in pushes:
        mine, others = state[name], state["b" if name == "a" else "a"]
        for ts, x in zip(columns["ts"].tolist(), columns["x"].tolist(), strict=True):
            place = bisect_left(others, (x - 2 * REACH, 0))
            while place < len(others) and others[place][0] <= x + 2 * REACH:
                y, then = others[place]
                results += abs(x - y) <= REACH and abs(ts - then) <= WINDOW
                place += 1
            insort(mine, (x, ts))
    return results


@pytest.mark.parametrize("batch", [1, 64, 1024, 16_384])
@pytest.mark.parametrize("engine", [windjoin_band, python_band])
def test_rows_per_push_of_a_band(
    benchmark: Any, engine: Callable[[Pushes], int], batch: int
) -> None:
    rows = 4 * WINDOW // SPACING // RARE
    pushes = [
        (name, {"ts": columns["ts"], "x": columns["k"] / 1e6})
        for name, columns in islice(endless(batch, 1_000_000), 2 * -(-rows // batch))
    ]
    benchmark.group = f"band, pushes of {batch} rows"
    results = benchmark.pedantic(engine, (pushes,), rounds=3, warmup_rounds=1)
    assert results == python_band(pushes)
    benchmark.extra_info["results"] = results
    benchmark.extra_info["rows"] = batch * len(pushes)
    benchmark.extra_info["ns_per_row"] = benchmark.stats["min"] / (batch * len(pushes)) * 1e9
    benchmark.extra_info["bytes"] = 16 * results
