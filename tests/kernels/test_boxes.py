"""Several ranges at once: boxes over two or more columns, against all pairs looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
Pairs = NDArray[np.bool_]
SPAN = 2_000
EDGES = np.array([-(2**63), 2**63 - 1, 0, -1, 1], np.int64)


def rows(seed: int, n: int, kind: str) -> Columns:
    """Intervals [lo, hi] with a third column; times in order, many of them equal."""
    random = np.random.default_rng(seed)
    time = np.sort(random.integers(0, SPAN, n))
    low = random.integers(-500, 500, n)
    length = random.integers(0, 40, n)
    third = random.integers(0, 30, n)
    if kind == "real":
        low = low / 4
        return {
            "ts": time,
            "lo": low,
            "hi": low + length / 8,
            "z": np.where(third, third / 2, -0.0),
        }
    if kind == "edges":
        low, high = (EDGES[random.integers(0, 5, n)] for _ in range(2))
        return {"ts": time, "lo": low, "hi": high, "z": third}
    return {"ts": time, "lo": low, "hi": low + length, "z": third}


CONDITIONS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "overlap": lambda a, b: [a["lo"] <= b["hi"], b["lo"] <= a["hi"]],
    "strict": lambda a, b: [a["lo"] < b["hi"], a["hi"] > b["lo"]],
    "contained": lambda a, b: [a["lo"] >= b["lo"], a["hi"] <= b["hi"]],
    "point": lambda a, b: [b["lo"] <= a["lo"], a["lo"] < b["hi"]],
    "bands": lambda a, b: [
        (a["lo"] - b["lo"]).between(-20, 20),
        (a["hi"] - b["hi"]).between(0, 15),
        (a["z"] - b["z"]).between(-3, 3),
    ],
    "four": lambda a, b: [
        a["lo"] <= b["hi"], b["lo"] <= a["hi"], a["z"] < b["z"], a["lo"] != b["lo"],
    ],
}  # fmt: skip
KINDS = ("whole", "real", "edges")


def whole(columns: Columns) -> dict[str, Any]:
    """As Python's own numbers where doubles and int64 would round or wrap."""
    edges = columns["lo"].dtype == np.int64 and np.isin(columns["lo"], EDGES[:2]).any()
    return {name: v.astype(object) if edges else v for name, v in columns.items()}


class _Streams:
    """Broadcasts two streams against each other under the names of a condition."""

    def __init__(self, columns: dict[str, Any], axis: int) -> None:
        self.columns, self.axis = columns, axis

    def __getitem__(self, name: str) -> Any:
        return _Operand(np.expand_dims(self.columns[name], self.axis))


class _Operand(np.ndarray[Any, Any]):
    """An array whose differences know `between`."""

    def __new__(cls, values: Any) -> Any:
        return np.asarray(values).view(cls)

    def between(self, low: float, high: float) -> Any:
        return (self >= low) & (self <= high)


def expected(a: Columns, b: Columns, window: int, condition: str) -> Counter[tuple[int, int]]:
    """Look at all pairs."""
    left, right = whole(a), whole(b)
    near = np.abs(a["ts"][:, None] - b["ts"][None, :]) <= window
    for holds in CONDITIONS[condition](_Streams(left, 1), _Streams(right, 0)):
        near &= np.asarray(holds).astype(np.bool_)
    return Counter(zip(*(at.tolist() for at in np.nonzero(near)), strict=True))


def query(window: int, condition: str) -> Any:
    a, b = (wj.stream(name, time="ts", window=window) for name in "ab")
    return wj.join(a, b, on=CONDITIONS[condition](a, b))


def found(indices: dict[str, Any]) -> Counter[tuple[int, int]]:
    return Counter(zip(indices["a"].tolist(), indices["b"].tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("window", [0, 60, 5 * SPAN])
def test_batch_equals_all_pairs(condition: str, kind: str, window: int) -> None:
    sizes = (700, 900) if window < SPAN else (300, 200)
    tables = {
        name: rows(seed, n, kind) for seed, (name, n) in enumerate(zip("ab", sizes, strict=True))
    }
    owed = expected(tables["a"], tables["b"], window, condition)
    join = query(window, condition)
    for threads in (1, 3):
        assert found(join.indices(tables, threads=threads)) == owed


@pytest.mark.parametrize("condition", ["overlap", "contained"])
def test_small_blocks_stop_and_go_on_anywhere(condition: str, small_blocks: None) -> None:
    tables = {name: rows(seed, 1200, "whole") for seed, name in enumerate("ab")}
    owed = expected(tables["a"], tables["b"], 400, condition)
    assert found(query(400, condition).indices(tables)) == owed


def test_a_hop_before_may_find_a_little_more_than_a_block(small_blocks: None) -> None:
    tables = {name: rows(seed, 120, "whole") for seed, name in enumerate("abc")}
    a, b, c = (wj.stream(name, time="ts", window=900) for name in "abc")
    join = wj.join(a, b, c, on=[a["z"] == c["z"], a["lo"] < b["lo"], b["hi"] < c["hi"]])
    s, t, u = (
        {
            k: v.reshape([-1 if axis == own else 1 for axis in range(3)])
            for k, v in tables[n].items()
        }
        for own, n in enumerate("abc")
    )
    times = np.broadcast_arrays(s["ts"], t["ts"], u["ts"])
    passed = np.maximum.reduce(times) - np.minimum.reduce(times) <= 900
    passed = passed & (s["z"] == u["z"]) & (s["lo"] < t["lo"]) & (t["hi"] < u["hi"])
    owed = Counter(zip(*(at.tolist() for at in np.nonzero(passed)), strict=True))
    found_ = join.indices(tables)
    assert Counter(zip(*(numbers.tolist() for numbers in found_.values()), strict=True)) == owed
    assert "through boxes" in join.explain()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_session_equals_all_pairs(condition: str, kind: str) -> None:
    """Thousands of rows, late ones among them, in batches that fill, pack and merge runs."""
    window, lateness, n = 90, 400, 1100 if kind == "edges" else 2600
    tables = {name: rows(seed, n, kind) for seed, name in enumerate("ab")}
    random = np.random.default_rng(5)
    pushes = []
    for name, columns in tables.items():
        arrival = np.argsort(columns["ts"] + random.integers(0, 30, n), kind="stable")
        tables[name] = columns = {key: values[arrival] for key, values in columns.items()}
        cuts = np.sort(random.choice(n, 40, replace=False))
        for rows_ in np.split(np.arange(n), cuts):
            if len(rows_):
                pushes.append((rows_[0], name, rows_))
    got: Counter[tuple[int, int]] = Counter()
    schemas = {name: pa.table(columns).schema for name, columns in tables.items()}
    with query(window, condition).open(schemas, lateness=lateness, rows_only=True) as session:
        for _, name, at in sorted(pushes, key=lambda push: (push[0], push[1])):
            batch = {key: values[at] for key, values in tables[name].items()}
            got += found(session.push(name, batch))
        got += found(session.close())
        assert sum(len(r) for r in session.rejected.values()) == 0
    assert got == expected(tables["a"], tables["b"], window, condition)


def test_explain_names_the_index_and_both_conditions() -> None:
    tables = {name: rows(seed, 3000, "whole") for seed, name in enumerate("ab")}
    join = query(400, "overlap")
    join.indices(tables)
    assert 'b through boxes of several values for a["lo"] <= b["hi"], b["lo"] <= a["hi"]' in (
        join.explain()
    )


def test_ends_of_an_interval_are_estimated_together() -> None:
    tables = {name: rows(seed, 3000, "whole") for seed, name in enumerate("ab")}
    join = query(5 * SPAN, "overlap")
    results = len(join.indices(tables)["a"])
    step = join.explain("json")["order"]["steps"][0]
    assert results / 2 < step["expected"]["kept"] < results * 2


def test_state_is_given_back_as_windows_move() -> None:
    with query(50, "overlap").open(rows_only=True) as session:
        sizes = []
        for turn in range(40):
            for seed, name in enumerate("ab"):
                batch = rows(seed, 2000, "whole")
                batch["ts"] = batch["ts"] + turn * SPAN
                session.push(name, batch)
            sizes.append(session.state_bytes)
        assert max(sizes[20:]) <= max(sizes[:20])
