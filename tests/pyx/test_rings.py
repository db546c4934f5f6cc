"""Loops over times in rings and arrays, and results whose memory has been handed out."""

from __future__ import annotations

import numpy as np
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.pyx.base.column import Ring, in_order, time_order

ENDS = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1])
TIMES = st.lists(ENDS | st.integers(-5, 5), max_size=40)


@given(TIMES, st.integers(0, 2))
def test_in_order_is_what_sorting_says(times: list[int], longer: int) -> None:
    rows = np.array([*times, *[2**63 - 1] * (4095 * longer), *times], np.int64)
    assert in_order(rows) == bool(np.array_equal(np.sort(rows), rows))
    ordered = np.sort(rows)
    assert in_order(ordered)


STRAYS = st.lists(st.tuples(st.integers(0, 999), ENDS | st.integers(-5, 1005)), max_size=160)


@given(STRAYS, st.integers(1, 1000), st.integers(1, 9))
def test_order_of_times_that_are_in_order_but_for_a_few(
    strays: list[tuple[int, int]], rows: int, ties: int
) -> None:
    times = np.arange(rows) // ties
    for row, time in strays:
        times[row % rows] = time
    assert time_order(times).tolist() == np.argsort(times, kind="stable").tolist()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.124, 0.126, 0.5, 1.0])
def test_order_of_many_times(share: float) -> None:
    random = np.random.default_rng(5)
    for rows in (31, 32, 33, 255, 256, 4000, 20_000):
        late = random.random(rows) < share
        times = np.arange(rows) - random.integers(0, 700, rows) * late
        assert time_order(times).tolist() == np.argsort(times, kind="stable").tolist()


@given(TIMES, st.integers(0, 31), ENDS | st.integers(-6, 6))
def test_first_row_alive_in_a_ring(times: list[int], begin: int, horizon: int) -> None:
    times = times[:32]
    ring = Ring(np.int64, 32)
    ring.put(begin, np.array(times, np.int64))
    gone = next((i for i, time in enumerate(times) if time >= horizon), len(times))
    assert ring.first_alive(begin, begin + len(times), horizon) == begin + gone


@pytest.mark.parametrize("rows", [1, 7, 9, 40])
@pytest.mark.parametrize("window", [0, 3, 2**63 - 1])
@pytest.mark.parametrize("on", ["key", "value"])
def test_windows_end_where_int64_does(rows: int, window: int, on: str) -> None:
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    same = a["k"] == b["k"] if on == "key" else abs(a["x"] - b["x"]) <= 0.5
    columns = {"k": np.zeros(rows, np.int64)} if on == "key" else {"x": np.zeros(rows)}
    low, high = np.full(rows, 1 - 2**63), np.full(rows, 2**63 - 1)  # the least one is refused
    found = 0
    with wj.join(a, b, on=same).open(rows_only=True) as session:
        for times in (low, low + 1, high - 1, high):
            for name in "ab":
                found += len(session.push(name, {"t": times, **columns})["a"])
    near = 8 if window else 4  # pairs of the four times that meet
    assert found == near * rows * rows


@pytest.mark.parametrize("on", ["key", "value"])
def test_results_stay_as_they_were_when_later_ones_come(on: str) -> None:
    random = np.random.default_rng(3)
    a, b = (wj.stream(name, time="t", window=40) for name in "ab")
    same = a["k"] == b["k"] if on == "key" else abs(a["k"] - b["k"]) <= 1
    query, come, held = wj.join(a, b, on=same), {"a": [], "b": []}, []
    with query.open(rows_only=True) as session:
        for size in (40, 900, 3000, 20, 2500, 3000, 500, 3000, 2800, 100):
            start = 60 * len(come["a"])
            for name in "ab":
                times = np.sort(random.integers(start, start + 60, size))
                rows = {"t": times, "k": random.integers(0, 300, size)}
                come[name].append(rows)
                held.append(session.push(name, rows))
    whole = {
        name: {c: np.concatenate([rows[c] for rows in parts]) for c in "tk"}
        for name, parts in come.items()
    }
    expected = query.indices(whole)
    found = {name: np.concatenate([part[name] for part in held]) for name in "ab"}
    assert max(len(part["a"]) for part in held) > 8192
    pairs = [np.sort(rows["a"] * 2**32 + rows["b"]) for rows in (expected, found)]
    assert np.array_equal(*pairs)
