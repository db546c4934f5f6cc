"""Joins of thousands of rows: see `tests.large`."""

from __future__ import annotations

import numpy as np
import pytest
import windjoin as wj

from tests import large


@pytest.mark.parametrize("shape", list(large.shapes()))
def test_large_joins_equal_numpy(shape: tuple[str, int, tuple[int, int], int]) -> None:
    assert min(large.compare(*shape)) > 100


@pytest.mark.parametrize("keys", [5, 60])
def test_three_way_pushes_equal_numpy(keys: int) -> None:
    assert large.compare_three(keys, 300) > 100


SIZES = [0.0, 5e-324, 1e-300, 0.1, 1 / 3, 1.0, 3.0, 1e9, 2.0**53, 1e16, 1e300, 1.7e308]
ENDS = [0.0, 5e-324, 0.1, 0.2, 1.0, 2.0**53, 1e299, 1.7e308]


@pytest.mark.parametrize("low", [-end for end in ENDS] + ENDS)
def test_bands_of_doubles_are_exact(low: float) -> None:
    around = np.array([w for v in SIZES for w in (np.nextafter(v, -1), v, np.nextafter(v, 2e308))])
    values = np.concatenate([around, -around, [np.inf, -np.inf, np.nan]])
    tables = {name: {"t": np.zeros(len(values), np.int64), "v": values} for name in "ab"}
    a, b = (wj.stream(name, time="t", window=0) for name in "ab")
    with np.errstate(all="ignore"):
        difference = values[:, None] - values[None, :]
    for high in [low, np.nextafter(low, 2e308), *(end for end in ENDS if end > low)]:
        query = wj.join(a, b, on=(a["v"] - b["v"]).between(low, high))
        wanted = large.expected((difference >= low) & (difference <= high))
        assert large.joined(query, tables) == wanted, (low, high)
        assert large.pushed(query, tables, 20) == wanted, (low, high)
