"""The index of vectors where rounding to bytes says little, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

from tests.pyx.test_similarity_indexes import WINDOWS, check, exact, in_windows, times
from tests.similarity_paths import streams

ROWS = 420
WIDTH = 37


def rows_of(kind: str, random: Any) -> Any:
    """Vectors that are hard to round: a few long ones, growing ones, with a component that stands
    out, too small or too large for squares of floats, infinite here and there, or all alike.
    """
    values = random.normal(0, 1, (ROWS, WIDTH))
    if kind == "outlier":
        values[:, 5] *= 1e6
    elif kind == "denormal":
        values *= 1e-41
    elif kind == "huge":
        values *= 1e30
    elif kind == "infinite":
        values[random.random((ROWS, WIDTH)) < 1 / 400] = np.inf
    elif kind == "long":
        values[::50] *= 1000
    elif kind == "growing":
        values *= np.geomspace(1e-3, 1e3, ROWS)[:, None]
    else:
        values = 5 + random.integers(0, 2, (ROWS, WIDTH)) * 1e-6
    return values.astype(np.float32)


@pytest.mark.parametrize("name", ["l2", "dot", "cosine"])
@pytest.mark.parametrize(
    "kind", ["long", "growing", "outlier", "denormal", "huge", "infinite", "alike"]
)
def test_vectors_that_round_badly_lose_no_pair(name: str, kind: str) -> None:
    random = np.random.default_rng(len(name) + len(kind))
    made, tables = [], []
    for _ in range(2):
        made.append(rows_of(kind, random))
        flat = pa.FixedSizeListArray.from_arrays(pa.array(made[-1].reshape(-1)), WIDTH)
        tables.append(pa.table({"t": times(random, ROWS), "v": flat}))
    a, b = tables
    with np.errstate(invalid="ignore"):  # inf - inf
        value, inside = exact(name, *made), in_windows(a, b)
    inside &= ~np.isnan(value)
    s, u = streams(WINDOWS)
    measure = getattr(wj, name)(s["v"], u["v"])
    for share in (0.02, 0.5):
        limit = float(np.sort(value[inside])[int(share * inside.sum())])  # one pair lies on it
        check(measure <= limit, (a, b), value <= limit)
        check(measure > limit, (a, b), value > limit)
    check(measure >= limit, (a, b), value >= limit, live=True)
