"""Batch band: from a needle to half of the window, where a scan is as good as any index."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.micro.rows import ENGINES, SPACING, engine, timed, valued

ROWS = 50_000
PAIRS_IN_WINDOW = 400


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("reach", [1e-6, 1e-4, 1e-2, 0.3], ids=lambda r: f"reach_{r:g}")
def test_selectivity(benchmark: Any, name: str, reach: float) -> None:
    window = PAIRS_IN_WINDOW * SPACING // 2
    chosen = engine(name, "band", valued(ROWS), window, reach)
    timed(benchmark, chosen, f"band 2x{ROWS} rows, {PAIRS_IN_WINDOW} in the window, {reach:g}")
