"""The index of sets where only some of a row's items are counted, and as popularity drifts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.pyx.encoding.varlen import set_varlen_rows
from windjoin.pyx.similarity.bitmaps import SetBitmaps

from tests import similarity_oracle as oracle
from tests.pyx.test_similarity_indexes import WINDOWS, check, matrix, times
from tests.similarity_paths import batch, on_every_instruction_set, pushes, streams

DOMAIN = 8000  # more items than lanes


def near_duplicates(random: Any, size: int, rows: int = 700) -> pa.Table:
    """Sets of about ``size`` items, copies of 30 with a twentieth of the items replaced."""
    originals = np.random.default_rng(size).integers(0, DOMAIN, (30, size))
    sets = originals[random.integers(0, 30, rows)]
    sets = np.where(random.random(sets.shape) < 0.05, random.integers(0, DOMAIN, sets.shape), sets)
    lengths = random.integers(9 * size // 10, size + 1, rows)
    items = [row[:length].tolist() for row, length in zip(sets, lengths, strict=True)]
    return pa.table({"t": times(random, rows), "v": pa.array(items, pa.list_(pa.int64()))})


def similar(a: pa.Table, b: pa.Table) -> list[tuple[Any, Any]]:
    """Conditions of high thresholds, and which pairs they hold for."""
    x, y = matrix(a, DOMAIN), matrix(b, DOMAIN)
    common, n, m = (x @ y.T).astype(int), x.sum(1)[:, None], y.sum(1)[None, :]
    s, u = (stream["v"] for stream in streams(WINDOWS))
    half = int(np.median(common[common > 2]))
    return [
        (wj.jaccard(s, u) >= 0.6, common / (n + m - common) >= 0.6),
        (wj.jaccard(u, s) > 0.8, common / (n + m - common) > 0.8),
        (wj.cosine_sets(s, u) >= 0.75, common / np.sqrt(n * m, dtype=float) >= 0.75),
        (wj.containment(s, u) >= 0.9, common / n >= 0.9),
        (wj.containment(u, s) >= 0.9, common / m >= 0.9),
        (wj.overlap(s, u) >= half, common >= half),
    ]


@pytest.mark.parametrize("size", [9, 24, 400])
def test_high_thresholds_equal_a_matrix_product(size: int) -> None:
    random = np.random.default_rng(size)
    a, b = (near_duplicates(random, size) for _ in range(2))
    cases = similar(a, b)
    for condition, holds in cases:
        check(condition, (a, b), holds)
    check(cases[0][0], (a, b), cases[0][1], live=True)


SCRIPT = """
import numpy as np, zlib
from tests.pyx import test_set_indexes as t
from tests.similarity_paths import batch, streams
import windjoin as wj
random = np.random.default_rng(8)
found = []
for size in (6, 30):
    a, b = (t.near_duplicates(random, size) for _ in range(2))
    for condition, _ in t.similar(a, b):
        found.append(batch(wj.join(*streams(t.WINDOWS), on=condition), a, b))
print([len(pairs) for pairs in found], zlib.crc32(repr(found).encode()))
"""


def test_every_instruction_set_finds_the_same_with_high_thresholds() -> None:
    on_every_instruction_set(SCRIPT)


def test_explain_says_which_items_are_frequent() -> None:
    random = np.random.default_rng(4)
    ranks = (20_000 * random.random((2_000, 6)) ** 3).astype(int)
    rows = pa.table({"t": times(random, 2_000), "v": ranks.tolist()})
    query = wj.join(*streams(WINDOWS), on=wj.overlap(*(s["v"] for s in streams(WINDOWS))) >= 3)
    query.indices({"a": rows, "b": rows})
    assert re.search(
        r"learned: 512 items own a bitmap, \d+% of all items seen lately; the others share 1024",
        str(query.explain()),
    )
    with query.open(schemas={"a": rows.schema, "b": rows.schema}) as session:
        assert "learned: 0 items own a bitmap" in session.explain()
        session.push("a", pa.table({"t": [1, 2], "v": [[1, 2, 3], [2, 3, 4]]}))
        step = next(
            order["steps"][0]
            for order in session.explain("json")["orders"]
            if order["start"] == "b"
        )
    assert step["learned"] == "4 items own a bitmap, 100% of all items seen lately"


def test_sessions_choose_among_indexes_by_what_they_have_seen() -> None:
    """Overlap of nearly all pairs is no way to find the few whose vectors are near."""
    a, b = (wj.stream(n, time="t", window=2000) for n in "ab")
    on = [wj.overlap(a["s"], b["s"]) >= 1, wj.l2(a["v"], b["v"]) <= 0.5]
    random = np.random.default_rng(6)
    found = 0
    with wj.join(a, b, on=on).open(rows_only=True) as session:
        for now in range(60):
            for name in "ab":
                v = random.normal(0, 30, (100, 2)).astype(np.float32)
                rows = pa.table(
                    {"t": np.full(100, now), "s": [[1, 2]] * 100, "v": v.tolist()},
                    pa.schema(
                        [("t", pa.int64()), ("s", pa.list_(pa.int64())),
                         ("v", pa.list_(pa.float32()))]
                    ),
                )  # fmt: skip
                found += len(session.push(name, rows)["a"])
        steps = [order["steps"][0] for order in session.explain("json")["orders"]]
    assert found > 0
    assert all("vector" in step["index"] for step in steps)


NESTED = [*range(0, 20), 48, 49, 50, 98, 99, 100]
SIZES = [("jaccard", 0.5), ("jaccard", 49 / 99), ("containment", 1 / 3), ("containment", 0.98),
         ("cosine_sets", 0.5), ("cosine_sets", 7 / 10), ("overlap", 49)]  # fmt: skip


@pytest.mark.parametrize("strict", [False, True], ids=["from", "above"])
@pytest.mark.parametrize(("name", "limit"), SIZES)
def test_sizes_at_the_edge_of_what_can_pass(name: str, limit: float, strict: bool) -> None:
    """Of sets one of which lies in the other, the sizes alone say which pairs pass."""
    sets = [list(range(1000, 1000 + size)) for size in NESTED]
    values = [[k % 7, k % 11, k % 13] for k in range(600)] + sets
    rows = pa.table({"t": np.ones(len(values), int), "v": pa.array(values, pa.list_(pa.int64()))})
    holds = oracle.condition("sets", name, ">" if strict else ">=", limit)
    expected = [(i, j) for i, x in enumerate(sets) for j, y in enumerate(sets) if holds(x, y)]
    assert 20 < len(expected) < len(sets) ** 2 - 20 or (name, limit) == ("overlap", 49)
    a, b = streams((1, 1))
    for turned in (False, True):
        value = getattr(wj, name)(*((b["v"], a["v"]) if turned else (a["v"], b["v"])))
        query = wj.join(a, b, on=value > limit if strict else value >= limit)
        for size in (None, 64):
            found = batch(query, rows, rows) if size is None else pushes(query, rows, rows, size)
            nested = [(i - 600, j - 600) for i, j in found if i >= 600 and j >= 600]
            assert nested == sorted((j, i) if turned else (i, j) for i, j in expected)


def test_a_session_learns_anew_as_popularity_drifts() -> None:
    """Windows of 300 rows slide over 3000, whose popular items are others every 500 rows."""
    random = np.random.default_rng(9)
    sides = {}
    for name in "ab":
        ranks = (5000 * random.random((3000, 5)) ** 6).astype(int)
        sides[name] = ranks + 10_000 * (np.arange(3000) // 500)[:, None]  # never seen before
    query = wj.join(*streams((300, 300)), on=wj.overlap(*(s["v"] for s in streams((1, 1)))) >= 3)
    found: list[tuple[int, int]] = []
    learned = set()
    with query.open(rows_only=True) as session:
        for start in range(0, 3000, 50):
            for name, sets in sides.items():
                some = sets[start : start + 50].tolist()
                rows = pa.table({"t": np.arange(start, start + 50), "v": pa.array(some)})
                out = session.push(name, rows)
                found += zip(out["a"].tolist(), out["b"].tolist(), strict=True)
            step = session.explain("json")["orders"][0]["steps"][0]
            learned.add(step["learned"])
    kept = [[set(row) for row in sets.tolist()] for sets in sides.values()]
    expected = [
        (i, j)
        for i in range(3000)
        for j in range(max(i - 300, 0), min(i + 301, 3000))
        if len(kept[0][i] & kept[1][j]) >= 3
    ]
    assert len(expected) > 300
    assert sorted(found) == expected
    assert len(learned) > 10


def index_of(rows: list[list[int]]) -> tuple[SetBitmaps, Any]:
    """An index of rows, and the memory it reads."""
    codes = np.array([item for row in rows for item in row], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return SetBitmaps.load(False, set_varlen_rows(offsets, codes), np.arange(len(rows))), codes


def test_few_items_all_own_a_lane() -> None:
    index, _ = index_of([[k % 7, 7 + k % 11] for k in range(2000)])
    assert index.owners == (18, 1.0)
    assert index.exact_blocks == 1.0
    assert index.learned == 1


def test_popular_items_are_learned_and_forgotten() -> None:
    random = np.random.default_rng(1)
    ranks = (20_000 * random.random((40_000, 6)) ** 6).astype(int)
    still, _ = index_of(ranks.tolist())
    assert still.learned == 1
    number, share = still.owners
    assert number == 512
    assert 0.4 < share < 0.7
    drift = 5_000 * (np.arange(40_000) // 20_000)[:, None]
    moved, _ = index_of(((ranks + drift) % 20_000).tolist())
    assert moved.learned >= 2
    assert moved.owners[1] > 0.8 * share


@pytest.mark.parametrize(("items", "shared"), [(5000, True), (200, False)])
def test_few_rows_tell_whether_there_are_many_items(items: int, shared: bool) -> None:
    """Else all rows of the first blocks would be compared, as their items have no lane."""
    random = np.random.default_rng(items)
    rows = pa.table(
        {
            "t": np.arange(64),
            "i": pa.array(random.integers(0, items, (64, 8)).tolist(), pa.list_(pa.int64())),
        }
    )
    a, b = (wj.stream(name, time="t", window=100) for name in "ab")
    query = wj.join(a, b, on=wj.overlap(a["i"], b["i"]) >= 2)
    with query.open(dict.fromkeys("ab", rows.schema)) as session:
        session.push("a", rows)
        found = session.push("b", rows).num_rows
        assert ("the others share" in session.explain()) == shared
    assert found == query.run({"a": rows, "b": rows}).num_rows
