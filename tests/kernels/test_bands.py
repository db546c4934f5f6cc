"""Bands over whole tables and in sessions, against every combination: the shapes that decide how
stretches of time, cells and buckets are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from numpy.typing import NDArray
from windjoin.inputs import as_table
from windjoin.kernels import band

from tests.compare import assert_same_codes, codes

Array = NDArray[Any]
Columns = dict[str, Array]
Values = Callable[[np.random.Generator, int], Array]

ROWS = 3_000
INF = np.inf
VALUES: dict[str, Values] = {
    "uniform": lambda r, n: r.random(n),
    "one far away": lambda r, n: np.append(r.random(n - 1), 1e12),
    "far apart": lambda r, n: r.random(n) * 1e9,
    "clusters": lambda r, n: r.integers(0, 4, n) * 1e6 + r.random(n),
    "all the same": lambda r, n: np.full(n, 0.5),
    "infinite": lambda r, n: np.where(r.random(n) < 0.99, r.random(n), r.choice([-INF, INF], n)),
    "integers": lambda r, n: r.integers(-3_000, 3_000, n),
    "multiples": lambda r, n: r.integers(0, 500, n) * 4096,
    "ends of int64": lambda r, n: r.choice([-(2**63), 2**63 - 1, 0, 7], n),
}
TIMES: dict[str, Values] = {
    "even": lambda r, n: np.sort(r.integers(0, 60_000, n)),
    "burst": lambda r, n: np.sort(np.where(r.random(n) < 0.6, 500, r.integers(0, 10**9, n))),
    "one time": lambda r, n: np.full(n, 7),
}


def expected(a: Columns, b: Columns, window: int, reach: float) -> Array:
    found = []
    for start in range(0, len(a["ts"]), 500):
        t, x = a["ts"][start : start + 500, None], a["x"][start : start + 500, None]
        near = np.abs(t - b["ts"]) <= window
        if x.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                near &= np.abs(x - b["x"]) <= reach
        else:  # differences of int64 wrap
            least, most = np.minimum(x, b["x"]), np.maximum(x, b["x"])
            near &= (most.astype(np.uint64) - least.astype(np.uint64)) <= np.uint64(reach)
        i, j = np.nonzero(near)
        found.append(codes([i + start, j]))
    return np.sort(np.concatenate(found))


def tables(values: str, times: str, n: int) -> tuple[Columns, Columns]:
    random = np.random.default_rng(len(values) + len(times))
    made = [{"ts": TIMES[times](random, n), "x": VALUES[values](random, n)} for _ in "ab"]
    return made[0], made[1]


def query(window: int, reach: float) -> Any:
    a, b = (wj.stream(name, time="ts", window=window) for name in "ab")
    return wj.join(a, b, on=abs(a["x"] - b["x"]) <= reach)


def found(query: Any, a: Columns, b: Columns) -> Array:
    return codes(query.indices({"a": a, "b": b}, threads=1).values())


def agree(a: Columns, b: Columns, window: int, reach: float) -> None:
    assert_same_codes([found(query(window, reach), a, b)], expected(a, b, window, reach))


def reaches(values: str) -> list[float]:
    return [0.0, 2e-3] if VALUES[values](np.random.default_rng(0), 9).dtype.kind == "f" else [0, 3]


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("values", VALUES)
def test_band_of_whole_tables_finds_what_all_combinations_have(values: str, times: str) -> None:
    n = 800 if times == "one time" or values == "all the same" else ROWS
    window = 40 if times == "even" else 2
    a, b = tables(values, times, n)
    if times == "burst":
        a = {name: column[::4] for name, column in a.items()}
    for reach in reaches(values):
        agree(a, b, window, reach)


@pytest.mark.parametrize("reach", [0.2, 0.5, 3.0])
def test_wide_band_goes_over_most_of_a_window(reach: float) -> None:
    a, b = tables("uniform", "even", 3_000)
    agree(a, b, 5_000, reach)


@pytest.mark.parametrize("window", [0, 1, 10**6])
def test_any_window_has_its_stretches(window: int) -> None:
    a, b = tables("uniform", "even", 3_000)
    agree(a, b, window, 0.004)


def test_tables_of_few_rows() -> None:
    for n in (0, 1, 2, 1024, 1025):
        a, b = tables("integers", "even", max(n, 1))
        few = {name: column[:n] for name, column in b.items()}
        agree(a, few, 10_000, 40)


def test_tables_of_more_rows_than_the_index_can_number_do_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = tables("uniform", "even", ROWS)
    usual = query(5_000, 0.004)
    assert len(found(usual, a, b)) > 10
    assert "grid of cells" in usual.explain()
    monkeypatch.setattr(band, "MOST_RANKS", ROWS - 1)
    other = query(5_000, 0.004)
    assert_same_codes([found(other, a, b)], expected(a, b, 5_000, 0.004))
    assert "grid of cells" not in other.explain()


def pushed(a: Columns, b: Columns, window: int, reach: float, size: int) -> list[Array]:
    pairs: list[Array] = []
    schemas = {name: as_table(t, name).schema for name, t in (("a", a), ("b", b))}
    with query(window, reach).open(schemas=schemas, rows_only=True) as session:
        for start in range(0, len(a["ts"]), size):
            for name, columns in (("a", a), ("b", b)):
                some = {k: v[start : start + size] for k, v in columns.items()}
                rows = session.push(name, some)
                pairs.append(codes([rows["a"], rows["b"]]))
    return pairs


@pytest.mark.parametrize("size", [7, 500])
@pytest.mark.parametrize("values", VALUES)
def test_band_in_a_session_finds_what_all_combinations_have(values: str, size: int) -> None:
    a, b = tables(values, "even", 800 if values == "all the same" else 3_000)
    for reach in reaches(values):
        assert_same_codes(pushed(a, b, 600, reach, size), expected(a, b, 600, reach))
