"""A user's function over windows of growing size; the baseline is NumPy, a window at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import windjoin as wj

ROWS = 200_000
REACH = 0.001


def near(x: float, y: float) -> bool:
    return abs(x - y) <= REACH


def streams() -> dict[str, dict[str, Any]]:
    """Make two streams, one row a tick."""
    random = np.random.default_rng(7)
    return {name: {"ts": np.arange(ROWS), "x": random.random(ROWS)} for name in "ab"}


def windjoin(reach: int) -> Callable[[], int]:
    """Prepare the join with one thread."""
    a, b = (wj.stream(name, time="ts", window=reach) for name in "ab")
    query, tables = wj.join(a, b, on=wj.udf(near, a["x"], b["x"])), streams()
    return lambda: len(query.indices(tables, threads=1)["a"])


def numpy(reach: int) -> Callable[[], int]:
    """Prepare what one would write without a library: every row against its window."""
    tables = streams()
    x, y = tables["a"]["x"], tables["b"]["x"]

    def run() -> int:
        found = 0
        for row in range(ROWS):
            first = max(row - reach, 0)
            inside = np.abs(x[row] - y[first : row + reach + 1]) <= REACH
            found += len(np.flatnonzero(inside) + first)
        return found

    return run


@pytest.mark.parametrize("window", [256, 1024, 4096])
@pytest.mark.parametrize("engine", [windjoin, numpy])
def test_window(benchmark: Any, engine: Callable[[int], Callable[[], int]], window: int) -> None:
    benchmark.group = f"function 2x{ROWS} rows, {window} in the window"
    found = benchmark(engine(window // 2))
    benchmark.extra_info["results"] = found
    least = benchmark.stats.stats.min if benchmark.stats else 0.0
    benchmark.extra_info["ns_per_pair"] = round(least / ROWS / window * 1e9, 3)
