"""Tables that are joined in parts: groups of keys, or stretches of time where that does not go."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.kernels import parts
from windjoin.pyx.encoding.divide import divide

from tests.compare import assert_same_results
from tests.kernels.test_batch import indices
from tests.oracle import join
from tests.strategies import cases

ENDLESS = 1 << 40


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few rows be worth dividing, whatever their keys."""
    monkeypatch.setattr(parts, "ROWS_OF_A_GROUP", 5)
    monkeypatch.setattr(parts, "LEAST_DIVIDED", 2)
    monkeypatch.setattr(parts, "LEAST_KEYS", 0)
    monkeypatch.setattr(parts, "MOST_TWICE", 0)


def table(random: np.random.Generator, rows: int, keys: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {
        "t": random.integers(0, 4 * rows + 1, rows),
        "k": keys[random.integers(0, len(keys), rows)],
        "x": random.integers(0, 4, rows),
    }


def brute_force(tables: list[dict[str, Any]], window: int, same_x: bool) -> Counter[Any]:
    found: Counter[Any] = Counter()

    def longer(rows: tuple[int, ...]) -> None:
        if len(rows) == len(tables):
            found[rows] += 1
            return
        for row in range(len(tables[len(rows)]["t"])):
            times = [int(one["t"][r]) for one, r in zip(tables, (*rows, row), strict=False)]
            first, this = tables[0], tables[len(rows)]
            if (
                (not rows or this["k"][row] == first["k"][rows[0]])
                and (not same_x or not rows or this["x"][row] <= first["x"][rows[0]])
                and max(times) - min(times) <= window
            ):
                longer((*rows, row))

    longer(())
    return found


def query(streams: int, window: int, same_x: bool) -> Any:
    first, *others = [wj.stream(name, time="t", window=window) for name in "abc"[:streams]]
    on = [first["k"] == other["k"] for other in others]
    on += [other["x"] <= first["x"] for other in others if same_x]
    return wj.join(first, *others, on=on)


@given(
    st.integers(0, 2**32),
    st.sampled_from([(2, 60), (3, 25)]),
    st.sampled_from(["close", "low", "spread", "ends"]),
    st.sampled_from([20, ENDLESS]),
    st.booleans(),
    st.sampled_from([1, 3]),
)
def test_groups_of_keys_find_what_brute_force_finds(
    small_groups: None,
    seed: int,
    size: tuple[int, int],
    kind: str,
    window: int,
    same_x: bool,
    threads: int,
):
    random = np.random.default_rng(seed)
    streams, most = size
    keys = {
        "close": np.arange(1, 14),
        "low": np.arange(-(2**63), -(2**63) + 9),
        "spread": random.integers(-(2**62), 2**62, 12),
        "ends": np.array([-(2**63), -1, 0, 2**63 - 1]),
    }[kind]
    tables = [table(random, int(random.integers(0, most)), keys) for _ in range(streams)]
    asked = query(streams, window, same_x)
    found = asked.indices(dict(zip("abc", tables, strict=False)), threads=threads)
    rows = zip(*(found[name].tolist() for name in "abc"[:streams]), strict=True)
    assert Counter(rows) == brute_force(tables, window, same_x)
    if window == ENDLESS and not same_x and min(len(one["t"]) for one in tables) > 10:
        assert "groups of keys" in asked.explain()


@given(cases(), st.sampled_from([1, 2]))
def test_any_query_finds_what_the_oracle_finds(small_groups: None, case: Any, threads: int):
    assert_same_results(indices(case, threads=threads), join(case.query, case.rows()))


def tables_of(rows: int) -> dict[str, Any]:
    random = np.random.default_rng(rows)
    return {name: table(random, rows, np.arange(rows)) for name in "ab"}


def on_one_key(window: int, **options: Any) -> Any:
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"], **options)


def test_what_was_divided_is_told() -> None:
    asked = on_one_key(ENDLESS)
    assert "threads" not in asked.explain()
    asked.indices(tables_of(1_600_000), threads=2)
    assert "threads: 2, in 25 groups of keys" in asked.explain()
    assert asked.explain("json")["parts"] == {"count": 25, "of": "keys"}
    asked.indices(tables_of(1000), threads=1)
    assert "threads: 1\n" in asked.explain()


def test_short_windows_are_cut_by_time() -> None:
    asked = on_one_key(1000)
    asked.indices(tables_of(1_000_000), threads=1)
    assert "threads: 1, in 4 stretches of time" in asked.explain()


def test_rows_of_one_table_are_not_taken_for_rows_with_equal_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "LEAST_DIVIDED", 100_000)
    asked = on_one_key(ENDLESS)
    same = tables_of(150_000)["a"]
    asked.indices({"a": same, "b": same}, threads=1)
    assert "in 3 groups of keys" in asked.explain()


@pytest.mark.parametrize("outlier", [False, True])
def test_groups_of_neighbours_are_of_like_size(
    monkeypatch: pytest.MonkeyPatch, outlier: bool
) -> None:
    monkeypatch.setattr(parts, "LEAST_DIVIDED", 100_000)
    sizes = []

    def noted(*args: Any) -> Any:
        found = divide(*args)
        sizes.append(np.diff(found[-1]))
        return found

    monkeypatch.setattr(parts, "divide", noted)
    tables = tables_of(300_000)
    if outlier:
        for one in tables.values():
            one["k"] //= 4
        tables["a"]["k"][7] = 1_000_000
    on_one_key(ENDLESS).indices(tables, threads=1)
    assert len(sizes) == 2
    assert all(one.max() < 2 * 300_000 / len(one) for one in sizes)


@pytest.mark.parametrize("why", ["text", "two keys", "another key", "anything", "few keys"])
def test_what_cannot_be_divided_is_cut_by_time(
    small_groups: None, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    random = np.random.default_rng(7)
    tables = [table(random, 40, np.arange(7)) for _ in "abc"]
    for one in tables:
        one["w"] = one["k"].astype(str)
    a, b, c = (wj.stream(name, time="t", window=ENDLESS) for name in "abc")
    asked = {
        "text": lambda: wj.join(a, b, on=a["w"] == b["w"]),
        "two keys": lambda: wj.join(a, b, on=[a["k"] == b["k"], a["x"] == b["x"]]),
        "another key": lambda: wj.join(a, b, c, on=[a["k"] == b["k"], b["x"] == c["x"]]),
        "anything": lambda: wj.join(a, b, on=[a["k"] == b["k"], (a["x"] == 1) | (b["x"] == 2)]),
        "few keys": lambda: wj.join(a, b, on=a["k"] == b["k"]),
    }[why]()
    if why == "few keys":
        monkeypatch.setattr(parts, "LEAST_KEYS", 1000)
    found = asked.indices(dict(zip(asked.names, tables, strict=False)), threads=2)
    assert len(found["a"])
    assert "in 2 stretches of time" in asked.explain()


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 64, 1000])
@pytest.mark.parametrize("close", [True, False])
def test_divided_rows_are_all_there_and_stay_in_order(rows: int, close: bool) -> None:
    random = np.random.default_rng(rows)
    keys, times = random.integers(50, 98, rows), np.sort(random.integers(0, 99, rows))
    low, shift, groups = (50, 4, 3) if close else (None, 0, 3)
    key, time, row, begin = divide(keys, times, groups, low, shift)
    assert sorted(row.tolist()) == list(range(rows))
    assert (key == keys[row]).all()
    assert (time == times[row]).all()
    assert begin[0] == 0
    assert begin[-1] == rows
    held = [set(key[begin[g] : begin[g + 1]].tolist()) for g in range(groups)]
    assert sum(map(len, held)) == len(set(keys.tolist())), "equal keys share a group"
    assert all((np.diff(row[begin[g] : begin[g + 1]]) > 0).all() for g in range(groups))
    if close:
        assert all({(k - 50) >> 4 for k in held[g]} <= {g} for g in range(groups))
