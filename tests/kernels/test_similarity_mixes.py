"""Random mixes of measures with equalities, bands and inequalities over two to four streams."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj

from tests import similarity_oracle as oracle

SCHEMA = pa.schema(
    [("t", pa.int64()), ("k", pa.int32()), ("x", pa.float64()), ("s", pa.list_(pa.int32())),
     ("w", pa.map_(pa.string(), pa.float64())), ("v", pa.list_(pa.float32())), ("b", pa.binary(2))]
)  # fmt: skip
MEASURES = [
    ("sets", "overlap", "s", ">=", 2), ("sets", "jaccard", "s", ">=", 1 / 3),
    ("sets", "containment", "s", ">", 0.5), ("sets", "cosine_sets", "s", "<", 0.5),
    ("weighted", "inner_product", "w", ">=", 1.0), ("weighted", "cosine", "w", ">", 0.5),
    ("vectors", "l2", "v", "<=", 5**0.5), ("vectors", "dot", "v", ">=", 4.0),
    ("vectors", "linf", "v", "<", 2.0), ("bytes", "mean_abs_diff", "b", "<=", 4.5),
    ("bytes", "hamming", "b", "<=", 1),
]  # fmt: skip
Row = dict[str, Any]
Holds = Callable[[Row, Row], bool]


def rows_of(chance: random.Random, count: int) -> list[Row]:
    """Rows in order of time; popular items drift, some values are null, some vectors shorter."""
    rows = []
    for t in sorted(chance.randrange(60) for _ in range(count)):
        pairs = [(item, chance.choice([-1.0, 0.0, 0.5, 2.0])) for item in chance.sample("abcde", 3)]
        row = {
            "t": t, "k": chance.randrange(3), "x": chance.randrange(60) / 10,
            "s": [t // 2 + int(9 * chance.random() ** 2) for _ in range(chance.randrange(6))],
            "w": pairs[: chance.randrange(4)], "b": bytes(chance.choice([0, 1, 9]) for _ in "xy"),
            "v": [float(chance.randrange(-2, 3)) for _ in range(chance.choice([3, 3, 2]))],
        }  # fmt: skip
        rows.append({n: None if n in "swvb" and chance.random() < 0.04 else row[n] for n in row})
    return rows


def some_condition(chance: random.Random, left: Any, right: Any) -> tuple[Any, Holds]:
    """One condition on two streams and what it means for two rows."""
    kind = chance.randrange(6)
    if kind == 0:
        return left["k"] == right["k"], lambda p, q: p["k"] == q["k"]
    if kind == 1:
        return abs(left["x"] - right["x"]) <= 1.5, lambda p, q: abs(p["x"] - q["x"]) <= 1.5
    if kind == 2:
        return left["x"] < right["x"], lambda p, q: p["x"] < q["x"]
    family, name, column, sign, limit = chance.choice(MEASURES)
    measure = getattr(wj, name)(left[column], right[column])
    passes = oracle.condition(family, name, sign, limit)
    condition: Any = oracle.COMPARE[sign](measure, limit)
    return condition, lambda p, q: passes(p[column], q[column])


def combinations(sides: list[list[Row]], windows: list[int], tests: Any) -> list[tuple[int, ...]]:
    """Every combination inside the windows for which all tests hold, stream by stream."""
    found: list[tuple[int, ...]] = [()]
    for number, side in enumerate(sides):
        longer = []
        for members, (at, row) in itertools.product(found, enumerate(side)):
            rows = [sides[k][member] for k, member in enumerate(members)] + [row]
            newest = max(one["t"] for one in rows)
            inside = all(newest - one["t"] <= w for one, w in zip(rows, windows, strict=False))
            due = (test for test in tests if max(test[:2]) == number)
            if inside and all(holds(rows[i], rows[j]) for i, j, holds in due):
                longer.append((*members, at))
        found = longer
    return sorted(found)


def in_turns(query: Any, sides: dict[str, pa.Table], size: int) -> list[tuple[int, ...]]:
    """What a session finds that gets some rows of each stream in turn."""
    found: list[tuple[int, ...]] = []
    schemas = dict.fromkeys(sides, SCHEMA)
    with query.open(schemas=schemas, rows_only=True, lateness=60) as session:
        for start in range(0, max(map(len, sides.values())), size):
            for name, side in sides.items():
                out = session.push(name, side.slice(start, size))
                found += zip(*(out[n].tolist() for n in sides), strict=True)
    return sorted(found)


@pytest.mark.parametrize("streams", [2, 3, 4])
def test_mixes_equal_plain_loops(streams: int) -> None:
    results = 0
    for seed in range(12):
        chance = random.Random(100 * streams + seed)
        names = "abcd"[:streams]
        windows = [chance.choice([3, 8, 20]) for _ in names]
        joined = [wj.stream(n, time="t", window=w) for n, w in zip(names, windows, strict=True)]
        rows = [rows_of(chance, {2: 120, 3: 40, 4: 25}[streams]) for _ in names]
        on, tests = [], []
        for j in (*range(1, streams), streams - 1):
            i, k = chance.sample([chance.randrange(j), j], 2)
            condition, holds = some_condition(chance, joined[i], joined[k])
            on.append(condition)
            tests.append((i, k, holds))
        query = wj.join(*joined, on=on)
        sides = {n: pa.Table.from_pylist(r, SCHEMA) for n, r in zip(names, rows, strict=True)}
        expected = combinations(rows, windows, tests)
        together = query.indices(sides)
        assert sorted(zip(*(together[n].tolist() for n in names), strict=True)) == expected, on
        for size in (1, 9):
            assert in_turns(query, sides, size) == expected, (on, size)
        results += len(expected)
    assert results > 1000
