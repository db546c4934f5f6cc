"""The plan: what it expects is near what comes, and it does not take long to make."""

from __future__ import annotations

import itertools
import time

import numpy as np
import windjoin as wj

ROWS = 4000
PLANNING_SECONDS = 10.0  # a dozen times what it takes


def streams(n: int, window: int = 400) -> list[wj.Stream]:
    return [wj.stream(f"s{i}", time="t", window=window) for i in range(n)]


def random_tables(names: tuple[str, ...], keys: int) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    return {
        name: {
            "t": np.arange(ROWS),
            "k": rng.integers(0, keys, ROWS),
            "j": rng.integers(0, keys, ROWS),
            "x": rng.random(ROWS),
        }
        for name in names
    }


def assert_expected_is_near_measured(query: wj.Query) -> None:
    query.indices(random_tables(query.names, keys=50), threads=1)
    for step in query.explain(format="json")["order"]["steps"]:
        for what in ("asked", "proposed", "kept"):
            expected, measured = step["expected"][what], step["measured"][what]
            assert 0.4 * measured < expected < 2.5 * measured, (what, step)


def test_an_equality_that_the_index_decides_counts_in_what_is_kept():
    a, b = streams(2)
    assert_expected_is_near_measured(wj.join(a, b, on=a["k"] == b["k"]))


def test_filters_behind_an_index_count_too():
    a, b = streams(2)
    on = [a["k"] == b["k"], a["j"] == b["j"], a["x"] < b["x"]]
    assert_expected_is_near_measured(wj.join(a, b, on=on[::2]))
    assert_expected_is_near_measured(wj.join(a, b, on=on[2:]))


def test_an_equality_that_follows_from_others_counts_once():
    a, b, c = streams(3, window=200)
    pairs = itertools.combinations((a, b, c), 2)
    assert_expected_is_near_measured(wj.join(a, b, c, on=[x["k"] == y["k"] for x, y in pairs]))


def test_the_most_selective_predicate_has_the_index_and_the_others_are_filters():
    a, b = streams(2)
    query = wj.join(a, b, on=[a["x"] < b["x"], a["k"] == b["k"]])
    query.indices(random_tables(query.names, keys=50))
    (step,) = query.explain(format="json")["order"]["steps"]
    assert step["index"] == "hash lists"
    assert step["serves"] == ['s0["k"] == s1["k"]']
    assert step["filters"] == ['s0["x"] < s1["x"]']


def test_sixteen_streams_with_a_condition_on_every_pair_are_planned_at_once():
    sixteen = streams(16, window=5)
    on = [a["k"] == b["k"] for a, b in itertools.combinations(sixteen, 2)]
    query = wj.join(*sixteen, on=on)
    row = {"t": [1], "k": [7]}
    begin = time.thread_time()
    rows = query.indices(dict.fromkeys(query.names, row), threads=1)
    assert time.thread_time() - begin < PLANNING_SECONDS
    assert all(numbers.tolist() == [0] for numbers in rows.values())
