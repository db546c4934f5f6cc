"""User functions called over the rows of a window as they lie, against all combinations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import windjoin as wj

from tests.compare import assert_same_codes, codes

SPAN = 4_000
Tables = dict[str, dict[str, Any]]


def near(x: float, y: float) -> bool:
    return abs(x - y) <= 0.01


def odd_sum(i: int, j: int) -> bool:
    return (i + j) % 2 == 1


def between_both(x: float, y: float, i: int, z: float) -> bool:
    return x <= y and y <= z and i > 0


def tables(names: str, n: int) -> Tables:
    random = np.random.default_rng(len(names))
    return {
        name: {
            "ts": np.sort(random.integers(0, SPAN, n)),
            "x": random.random(n),
            "i": random.integers(-3, 100, n),
        }
        for name in names
    }


def streams(names: str, window: int) -> list[Any]:
    return [wj.stream(name, time="ts", window=window) for name in names]


def pair_query(condition: str, window: int) -> Any:
    a, b = streams("ab", window)
    if condition == "near":
        return wj.join(a, b, on=wj.udf(near, a["x"], b["x"]))
    return wj.join(a, b, on=wj.udf(odd_sum, a["i"], b["i"]))


def pairs(condition: str, rows: Tables, window: int) -> Any:
    a, b = ({k: v[:, None] for k, v in rows["a"].items()}, rows["b"])
    passed = np.abs(a["ts"] - b["ts"]) <= window
    if condition == "near":
        passed &= np.abs(a["x"] - b["x"]) <= 0.01
    else:
        passed &= (a["i"] + b["i"]) % 2 == 1
    return codes(np.nonzero(passed))


def found(indices: dict[str, Any]) -> Any:
    return codes(indices.values())


@pytest.mark.parametrize("window", [0, 30, SPAN])
@pytest.mark.parametrize("condition", ["near", "odd_sum"])
def test_batch_equals_all_pairs(condition: str, window: int) -> None:
    rows = tables("ab", 1500)
    owed = pairs(condition, rows, window)
    for threads in (1, 3):
        indices = pair_query(condition, window).indices(rows, threads=threads)
        assert_same_codes([found(indices)], owed)


def test_small_blocks_stop_and_go_on_anywhere(small_blocks: None) -> None:
    rows = tables("ab", 700)
    indices = pair_query("odd_sum", 300).indices(rows)
    assert_same_codes([found(indices)], pairs("odd_sum", rows, 300))


@pytest.mark.parametrize("sorted_", [True, False])
@pytest.mark.parametrize("condition", ["near", "odd_sum"])
def test_session_equals_all_pairs(condition: str, sorted_: bool) -> None:
    """Slices grow, hold late rows, and expire."""
    rows, window, n = tables("ab", 2000), 120, 2000
    random = np.random.default_rng(3)
    for name, columns in rows.items():
        jitter = 0 if sorted_ else random.integers(0, 60, n)
        order = np.argsort(columns["ts"] + jitter, kind="stable")
        rows[name] = {key: values[order] for key, values in columns.items()}
    got = []
    with pair_query(condition, window).open(lateness=400, rows_only=True) as session:
        for part in np.array_split(np.arange(n), 23):
            for name, columns in rows.items():
                got.append(found(session.push(name, {k: v[part] for k, v in columns.items()})))
        got.append(found(session.close()))
        assert sum(len(late) for late in session.rejected.values()) == 0
    assert_same_codes(got, pairs(condition, rows, window))


def test_operands_of_several_bound_streams_and_of_the_row() -> None:
    rows, window = tables("abc", 160), 400
    a, b, c = streams("abc", window)
    query = wj.join(a, b, c, on=wj.udf(between_both, a["x"], b["x"], c["i"], c["x"]), cross=True)
    s, t, u = (
        {k: v.reshape([-1 if axis == own else 1 for axis in range(3)]) for k, v in rows[n].items()}
        for own, n in enumerate("abc")
    )
    times = np.broadcast_arrays(s["ts"], t["ts"], u["ts"])
    passed = np.maximum.reduce(times) - np.minimum.reduce(times) <= window
    passed = passed & (s["x"] <= t["x"]) & (t["x"] <= u["x"]) & (u["i"] > 0)
    assert np.array_equal(found(query.indices(rows)), codes(np.nonzero(passed)))


def test_explain_names_the_function() -> None:
    query = pair_query("near", SPAN)
    query.indices(tables("ab", 1500))
    assert 'through scan by function for udf(near, a["x"], b["x"])' in query.explain()


MANY = [f"v{number}" for number in range(33)]
namespace: dict[str, Any] = {}
exec(f"def sum_of_many({', '.join(MANY)}):\n    return {' + '.join(MANY)} > 16.5", namespace)
sum_of_many = namespace["sum_of_many"]


def test_a_function_of_more_operands_than_fit_is_still_exact() -> None:
    rows, (a, b) = tables("ab", 60), streams("ab", SPAN)
    operands = [a["x"], b["x"]] * 16 + [a["x"]]
    query = wj.join(a, b, on=wj.udf(sum_of_many, *operands))
    x, y = rows["a"]["x"].tolist(), rows["b"]["x"].tolist()
    passed = np.array([[sum_of_many(*[p, q] * 16, p) for q in y] for p in x])
    assert_same_codes([found(query.indices(rows))], codes(np.nonzero(passed)))
