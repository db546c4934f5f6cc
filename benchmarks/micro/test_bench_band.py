"""Batch band: from a needle to half of the window, where a scan is as good as any index.

The scan is a function of the user, called over every row of the window.
"""

from __future__ import annotations

from typing import Any

import pytest
import windjoin as wj

from benchmarks.micro.rows import ENGINES, SPACING, Engine, engine, timed, valued

ROWS = 50_000
PAIRS_IN_WINDOW = 400


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("reach", [1e-6, 1e-4, 1e-2, 0.3], ids=lambda r: f"reach_{r:g}")
def test_selectivity(benchmark: Any, name: str, reach: float) -> None:
    window = PAIRS_IN_WINDOW * SPACING // 2
    chosen = engine(name, "band", valued(ROWS), window, reach)
    timed(benchmark, chosen, f"band 2x{ROWS} rows, {PAIRS_IN_WINDOW} in the window, {reach:g}")


def scan(window: int, reach: float) -> Engine:
    """Prepare windjoin with a condition that no index serves."""
    bare = {name: rows.drop_columns(["i"]) for name, rows in valued(ROWS).items()}
    a, b = (wj.stream(name, time="ts", window=window) for name in "ab")

    def near(x: float, y: float) -> bool:
        return abs(x - y) <= reach

    query = wj.join(a, b, on=wj.udf(near, a["x"], b["x"]))
    return Engine(lambda: query.indices(bare, threads=1), lambda found: [found[n] for n in "ab"])


@pytest.mark.parametrize("reach", [1e-6, 1e-4, 1e-2, 0.3], ids=lambda r: f"reach_{r:g}")
def test_scan(benchmark: Any, reach: float) -> None:
    window = PAIRS_IN_WINDOW * SPACING // 2
    group = f"band 2x{ROWS} rows, {PAIRS_IN_WINDOW} in the window, {reach:g}"
    timed(benchmark, scan(window, reach), group)
