"""Batch inequalities: one, and two at once where only both together leave little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.generators import table
from benchmarks.micro.rows import ENGINES, SPACING, Tables, engine, ticks, timed

ROWS = 50_000


def intervals(length: float) -> Tables:
    """Make two streams of intervals on an axis of a million."""
    random = np.random.default_rng(7)
    tables = {}
    for name in "ab":
        low = random.random(ROWS) * 1e6
        tables[name] = table(ts=ticks(ROWS), lo=low, hi=low + random.random(ROWS) * length)
    return tables


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("length", [10, 1_000], ids=lambda n: f"length_{n}")
@pytest.mark.parametrize("share", [1, 20], ids=["whole_window", "window_1_of_20"])
def test_overlap(benchmark: Any, name: str, length: float, share: int) -> None:
    window = ROWS * SPACING // share
    chosen = engine(name, "intervals", intervals(length), window)
    timed(benchmark, chosen, f"intervals 2x{ROWS} rows, length {length}, window 1/{share}")
