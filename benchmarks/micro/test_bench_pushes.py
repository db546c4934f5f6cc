"""Continuous equality: rows per push.  The baseline keeps a dictionary of lists in Python."""

from __future__ import annotations

from bisect import bisect_left
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
