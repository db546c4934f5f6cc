"""Time-sorted lists per item: a hash index of sets of one item, and exact for any others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.kernels import items, replanning
from windjoin.kernels.sets import Sets

from tests.both_ways import differs_in_nothing
from tests.similarity_oracle import Row, condition, join
from tests.similarity_paths import all_paths, on_every_instruction_set, streams, table

WINDOWS = (40, 60)


@pytest.fixture
def item_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lists per item serve whatever they can, from the first look at a session's rows on."""
    monkeypatch.setattr(Sets, "options", classmethod(lambda *_: iter(())))
    monkeypatch.setattr(items, "PER_ENTRY", 0.0)
    monkeypatch.setattr(items, "PER_COMPARISON", 0.0)
    monkeypatch.setattr(replanning, "FIRST_LOOK", 30)
    monkeypatch.setattr(replanning, "LEAST_ROWS", 4)


def rows(random: Any, most: int, count: int = 150) -> list[Row]:
    """Sets of up to ``most`` items, some empty, with a null inside, or null."""
    found: list[Row] = []
    for t in sorted(random.integers(0, 3 * max(WINDOWS), count).tolist()):
        value: Any = random.integers(0, 12, random.integers(0, most + 1)).tolist()
        if random.random() < 0.1:
            value = random.choice(np.array([None, [None], []], object))
        found.append((t, value))
    return found


def index_names(query: wj.Query) -> list[str]:
    return [step["index"] for step in query.explain(format="json")["order"]["steps"]]


@pytest.mark.parametrize("most", [1, 2, 6])
@pytest.mark.parametrize(
    ("name", "sign", "limit"),
    [("overlap", ">=", 1), ("overlap", ">", 1), ("overlap", ">", 0), ("jaccard", ">=", 0.5),
     ("jaccard", ">", 0.5), ("containment", ">=", 1.0), ("cosine_sets", ">=", 0.5)],
)  # fmt: skip
def test_every_path_equals_plain_loops(
    item_lists: None, most: int, name: str, sign: str, limit: float
) -> None:
    random = np.random.default_rng(most)
    a, b = rows(random, most), rows(random, most)
    expected = join(a, b, WINDOWS, condition("sets", name, sign, limit))
    measure = getattr(wj, name)(*(stream["v"] for stream in streams(WINDOWS)))
    query = wj.join(*streams(WINDOWS), on=measure >= limit if sign == ">=" else measure > limit)
    tables = [table(side, pa.list_(pa.int64()), split=40) for side in (a, b)]
    for path, found in all_paths(query, *tables).items():
        assert found == expected, path
    assert index_names(query) == ["item lists"]
    assert len(expected) > 0 or (most, limit) == (1, 1)


def test_text_items_and_three_streams_meet_equality(item_lists: None) -> None:
    random = np.random.default_rng(3)
    sides = {
        n: pa.table({
            "t": np.sort(random.integers(0, 200, 90)),
            "k": random.integers(0, 3, 90),
            "s": [[str(i)] for i in random.integers(0, 9, 90)],
        })
        for n in "abc"
    }  # fmt: skip
    a, b, c = (wj.stream(n, time="t", window=50) for n in "abc")
    on = [wj.overlap(a["s"], b["s"]) >= 1, wj.jaccard(b["s"], c["s"]) >= 1, a["k"] == c["k"]]
    query = wj.join(a, b, c, on=on, select=[wj.overlap(a["s"], b["s"]).alias("n")])
    x, y, z = (side.to_pylist() for side in sides.values())
    expected = sum(
        p["s"] == q["s"] == r["s"] and p["k"] == r["k"]
        and max(p["t"], q["t"], r["t"]) - min(p["t"], q["t"], r["t"]) <= 50
        for p in x for q in y for r in z
    )  # fmt: skip
    found = query.run(sides)
    assert found["n"].to_pylist() == [1] * expected
    assert "item lists" in index_names(query)
    assert expected > 0


def one_item_each(random: Any, start: int, count: int, domain: int = 3000) -> pa.Table:
    sets = random.integers(0, domain, count)[:, None].tolist()
    return pa.table({"t": np.arange(start, start + count), "v": pa.array(sets)})


def test_a_hash_index_serves_sets_of_one_item_and_explain_says_so() -> None:
    random = np.random.default_rng(1)
    sides = {name: one_item_each(random, 0, 3000) for name in "ab"}
    query = wj.join(*streams((500, 500)), on=wj.overlap(*(s["v"] for s in streams((5, 5)))) >= 1)
    found = query.indices(sides)
    x, y = (np.array(side["v"].to_pylist())[:, 0] for side in sides.values())
    near = np.abs(np.subtract.outer(np.arange(3000), np.arange(3000))) <= 500
    assert len(found["a"]) == int((near & np.equal.outer(x, y)).sum()) > 100
    assert index_names(query) == ["item lists"]
    text = query.explain()
    assert "every set seen has one item at most: a hash index" in text
    assert "every set has one item at most: the lists are those of a hash index" in text


def in_use(session: Any) -> set[str]:
    orders = session.explain(format="json")["orders"]
    return {step["index"] for order in orders for step in order["steps"]}


def test_a_session_takes_the_hash_index_and_leaves_it_when_larger_sets_come() -> None:
    random = np.random.default_rng(2)
    query = wj.join(*streams((400, 400)), on=wj.overlap(*(s["v"] for s in streams((5, 5)))) >= 1)
    seen: dict[str, list[Any]] = {"a": [], "b": []}
    found: list[Any] = []
    schema = one_item_each(random, 0, 1).schema
    used = []
    with query.open(schemas={"a": schema, "b": schema}, rows_only=True) as session:
        for start in range(0, 16_000, 100):
            for name in "ab":
                some = one_item_each(random, start, 100)
                if start >= 6_000:
                    sets = random.integers(0, 3000, (100, 5)).tolist()
                    some = pa.table({"t": some["t"], "v": pa.array(sets)})
                seen[name] += some["v"].to_pylist()
                out = session.push(name, some)
                found += zip(out["a"].tolist(), out["b"].tolist(), strict=True)
            used.append(in_use(session))
    assert used[58] == {"item lists"}
    assert used[-1] == {"item bitmaps"}
    expected = []
    for i, left in enumerate(seen["a"]):
        for j in range(max(i - 400, 0), min(i + 401, 16_000)):
            if not set(left).isdisjoint(seen["b"][j]):
                expected.append((i, j))
    assert sorted(found) == expected


def test_the_short_way_of_one_item_differs_in_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replanning, "FIRST_LOOK", 200)
    random = np.random.default_rng(5)
    come = []
    for start in range(0, 4000, 50):
        come += [(name, one_item_each(random, start, 50, 40)) for name in "ab"]
    query = wj.join(*streams((90, 70)), on=wj.jaccard(*(s["v"] for s in streams((5, 5)))) > 0.5)
    assert differs_in_nothing(query, come, 0) > 0


SCRIPT = """
import numpy as np, zlib
from tests.pyx import test_item_lists as t
import windjoin as wj
random = np.random.default_rng(8)
a, b = (t.one_item_each(random, 0, 2500, 200) for _ in range(2))
x, y = t.streams((300, 300))
found = t.all_paths(wj.join(x, y, on=wj.overlap(x["v"], y["v"]) >= 1), a, b)
print([len(pairs) for pairs in found.values()], zlib.crc32(repr(found).encode()))
"""


def test_every_instruction_set_finds_the_same() -> None:
    on_every_instruction_set(SCRIPT)
