"""Rows of a session from their arrival until they are forgotten, at the borders of each step.

Each test is named for the mistake that it must find: expiry a tick early, a page that serves again
before its rows were given out, an index that takes rows which cannot match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest
import windjoin as wj

WINDOW = 10
Condition = Callable[[Any, Any], Any]
CONDITIONS: dict[str, Condition] = {
    "equality": lambda a, b: a["k"] == b["k"],
    "text": lambda a, b: a["s"] == b["s"],
    "two keys": lambda a, b: [a["k"] == b["k"], a["s"] == b["s"]],
    "band": lambda a, b: abs(a["x"] - b["x"]) <= 0.5,
    "inequality": lambda a, b: a["x"] < b["x"],
    "box": lambda a, b: [a["x"] <= b["x"], abs(a["k"] - b["k"]) <= 1],
    "function": lambda a, b: wj.udf(lambda x, y: x + y > 3, a["x"], b["x"]),
    "sets": lambda a, b: wj.overlap(a["i"], b["i"]) >= 1,
    "vectors": lambda a, b: wj.l2(a["v"], b["v"]) <= 1,
}


def query(condition: Condition, **options: Any) -> wj.Query:
    a, b = (wj.stream(name, time="t", window=WINDOW, **options) for name in "ab")
    return wj.join(a, b, on=condition(a, b))


def rows(times: list[int], seed: int = 0, more: dict[str, Any] | None = None) -> pa.Table:
    rng, n = np.random.default_rng(seed), len(times)
    k = rng.integers(0, 3, n)
    columns = {
        "t": np.array(times, np.int64),
        "n": np.arange(n),
        "kept": np.arange(n) % 3 > 0,
        "k": pa.array(k, mask=rng.random(n) < 0.1),
        "s": pa.array([f"key {one}" for one in k]),
        "x": pa.array(k * 1.0, mask=rng.random(n) < 0.1),
        "i": pa.array([[int(one), 7 + int(one)] for one in k], pa.list_(pa.int64())),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(k * 1.0, 2)), 2),
    }
    return pa.table({**columns, **(more or {})})


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_row_is_met_until_the_last_tick_of_its_window(name: str) -> None:
    more = {"k": [1], "s": ["key 1"], "x": [2.0], "i": pa.array([[1]], pa.list_(pa.int64()))}
    vector = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 1.0]), 2)
    first = rows([0], more={**more, "v": vector})
    joined = query(CONDITIONS[name])
    with joined.open(dict.fromkeys("ab", first.schema)) as session:
        session.push("a", first)
        met = []
        for time in (WINDOW, WINDOW, WINDOW + 1):
            other = rows([time], more={**more, "x": [2.5], "v": vector})
            met.append(session.push("b", other).num_rows)
    assert met == [1, 1, 0]


def test_a_page_does_not_serve_again_before_its_rows_were_given_out() -> None:
    """Pushes that meet all rows of a page, and let them expire."""
    texts = pa.array([f"row {n}: " + "x" * 500 for n in range(420)])
    wide = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(420.0).repeat(2500)), 2500)
    data = pa.table({"t": np.arange(420), "k": np.ones(420, int), "big": texts, "wide": wide})
    joined = query(lambda a, b: a["k"] == b["k"])
    with joined.open(dict.fromkeys("ab", data.schema)) as session:
        for start in range(0, 400, 8):  # as many rows as a page has
            session.push("a", data.slice(start, 8))
            found = session.push("b", data.take([start + WINDOW, start + WINDOW + 8]))
            assert session.metrics["streams"]["a"]["state_rows"] == 0
            assert found["a_t"].to_pylist() == list(range(start, start + 8))
            for column in ("big", "wide"):
                expected = data[column].take(found["a_t"])
                assert found[f"a_{column}"].to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("size", [1, 9, 100])
@pytest.mark.parametrize("name", CONDITIONS)
def test_no_index_takes_rows_that_cannot_match(name: str, size: int) -> None:
    rng = np.random.default_rng(5)
    tables = {
        stream: rows(np.sort(rng.integers(0, 200, 300)).tolist(), seed)
        for seed, stream in enumerate("ab")
    }
    joined = query(CONDITIONS[name], where=lambda s: s["kept"])
    whole = joined.run(tables)
    expected = sorted(zip(whole["a_n"].to_pylist(), whole["b_n"].to_pylist(), strict=True))
    assert all(a % 3 and b % 3 for a, b in expected)
    found: list[Any] = []
    with joined.open({stream: table.schema for stream, table in tables.items()}) as session:
        for start in range(0, 300, size):
            for stream, table in tables.items():
                out = session.push(stream, table.slice(start, size))
                found += zip(out["a_n"].to_pylist(), out["b_n"].to_pylist(), strict=True)
    assert sorted(found) == expected


PUSHES = pytest.param(500_000, marks=pytest.mark.slow)


@pytest.mark.parametrize("pushes", [5_000, PUSHES])
def test_memory_stays_flat_and_results_stay_as_they_were(pushes: int) -> None:
    data = {
        "t": np.zeros(1, np.int64), "k": np.zeros(1, np.int64), "s": ["text"], "x": [0.5]
    }  # fmt: skip
    schema = pa.table(data).schema
    joined = query(lambda a, b: a["k"] == b["k"])
    kept: list[tuple[int, pa.Table]] = []
    resident, held = [], []
    with joined.open(dict.fromkeys("ab", schema), lateness=3) as session:
        for time in range(pushes):
            row = {"t": [time], "k": [time % 7], "s": [f"text {time}"], "x": [time / 2]}
            table = pa.table(row, schema)
            session.push("a", table)
            found = session.push("b", table)
            if time in (100, pushes // 3):
                kept.append((time, found))
            if time in (pushes // 5, pushes - 1):
                resident.append(psutil.Process().memory_info().rss)
                held.append(session.state_bytes)
    assert held[1] - held[0] < 1 << 20
    assert resident[1] - resident[0] < 16 << 20
    for time, found in kept:
        assert found["b_s"].to_pylist() == [f"text {time}"] * len(found)
        assert sorted(found["a_t"].to_pylist()) == [time - 7, time]
