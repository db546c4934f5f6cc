"""``nearest=k``: the definition in plain Python, on every path."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st

from tests import similarity_oracle as oracle
from tests.similarity_paths import batch, streams, table

ROWS = st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 3), min_size=2, max_size=2)))
MEASURES = [("vectors", "l2", 1), ("vectors", "l1", 1), ("sets", "overlap", -1)]


def definition(
    left: list[Any], right: list[Any], pairs: list[tuple[int, int]], most: int, cost: Any
) -> list[tuple[int, int]]:
    """Of all pairs those that are among the best of the row that completes them."""
    of: dict[tuple[int, int], list[Any]] = {}
    for i, j in pairs:
        (t, a), (u, b) = left[i], right[j]
        later, earlier = ((1, j), (t, i)) if (u, 1) > (t, 0) else ((0, i), (u, j))
        of.setdefault(later, []).append((cost(a, b), *earlier, (i, j)))
    return sorted(pair for found in of.values() for *_, pair in sorted(found)[:most])


def by_pushes(query: Any, tables: list[pa.Table], order: list[tuple[int, int]]) -> Any:
    """Row numbers by a session that gets the rows one by one in some order."""
    found: list[tuple[int, int]] = []
    numbers: list[list[int]] = [[], []]
    schemas = dict(zip("ab", (rows.schema for rows in tables), strict=True))
    with query.open(schemas=schemas, lateness=9, rows_only=True) as session:
        for stream, row in order:
            numbers[stream].append(row)
            out = session.push("ab"[stream], tables[stream].slice(row, 1))
            found += zip(out["a"].tolist(), out["b"].tolist(), strict=True)
        out = session.close()
    found += zip(out["a"].tolist(), out["b"].tolist(), strict=True)
    return sorted((numbers[0][i], numbers[1][j]) for i, j in found)


@pytest.mark.parametrize(("family", "name", "sign"), MEASURES)
@given(
    left=ROWS,
    right=ROWS,
    most=st.integers(1, 3),
    limit=st.integers(0, 4),
    windows=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    shuffle=st.randoms(use_true_random=False),
)
def test_only_the_best_partners_stay(
    family: str, name: str, sign: int, left: Any, right: Any, most: int, limit: int,
    windows: tuple[int, int], shuffle: Any,
) -> None:  # fmt: skip
    for rows in (left, right):  # arrival numbers must not depend on the order of pushes
        rows.sort(key=lambda row: row[0])
    a, b = streams(windows)
    measure = getattr(wj, name)(a["v"], b["v"])
    query = wj.join(a, b, on=measure <= limit if sign > 0 else measure >= limit, nearest=most)
    holds = oracle.condition(family, name, "<=" if sign > 0 else ">=", limit)
    pairs = oracle.join(left, right, windows, holds)

    def cost(x: Any, y: Any) -> float:
        value = oracle.measure(family, name, x, y)
        assert value is not None
        return sign * value

    expected = definition(left, right, pairs, most, cost)
    arrow = pa.list_(pa.float32()) if family == "vectors" else pa.list_(pa.int64())
    tables = [table(left, arrow), table(right, arrow, 1)]
    assert batch(query, *tables) == expected
    assert batch(query, *tables, threads=2) == expected
    order = [(s, i) for s, rows in enumerate((left, right)) for i in range(len(rows))]
    ahead = {id(pair): shuffle.random() * 2 - 1 for pair in order}
    order.sort(key=lambda pair: (pair[0], pair[1]))
    mixed = sorted(order, key=lambda pair: (left, right)[pair[0]][pair[1]][0] + ahead[id(pair)])
    mixed = _each_in_turn(mixed)
    assert by_pushes(query, tables, mixed) == expected


def _each_in_turn(order: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The streams' turns as they are, with the rows of each in their own order."""
    left = {stream: iter(sorted(r for s, r in order if s == stream)) for stream in (0, 1)}
    return [(stream, next(left[stream])) for stream, _ in order]


NUMBERS = st.sampled_from([0.0, 1.0, 2.0, -0.0, 1e200, math.inf, math.nan])
MIXED = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.lists(NUMBERS, min_size=1, max_size=2),
        st.sampled_from([0.0, 1.0, 2.0, None]),
    ),
    max_size=9,
)


def products(x: float, y: float) -> bool:
    return x * y > 0.5


@pytest.mark.parametrize("name", ["linf", "l1", "dot"])
@given(
    left=MIXED,
    right=MIXED,
    most=st.integers(1, 3),
    sign=st.sampled_from(["<", "<=", ">", ">="]),
    others=st.sets(st.sampled_from(["inequality", "function"])),
    windows=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    shuffle=st.randoms(use_true_random=False),
)
def test_partners_are_counted_after_all_conditions(
    name: str, left: Any, right: Any, most: int, sign: str, others: set[str],
    windows: tuple[int, int], shuffle: Any,
) -> None:  # fmt: skip
    """Rows in any order, ties, and values that are not there, beside other conditions."""
    a, b = streams(windows)
    limit = 1.0 if sign[0] == "<" else -1.0
    on = [oracle.COMPARE[sign](getattr(wj, name)(a["v"], b["v"]), limit)]
    on += [a["x"] < b["x"]] if "inequality" in others else []
    on += [wj.udf(products, a["x"], b["x"])] if "function" in others else []
    query = wj.join(a, b, on=on, nearest=most)

    def holds(one: Any, other: Any) -> bool:
        (v, x), (w, y) = one, other
        known = not others or (x is not None and y is not None)
        value = oracle.measure("vectors", name, v, w)
        fits = value is not None and oracle.COMPARE[sign](value, limit) and known
        fits = fits and ("inequality" not in others or x < y)
        return fits and ("function" not in others or products(x, y))

    rows = [[(t, (v, x)) for t, v, x in side] for side in (left, right)]
    pairs = oracle.join(*rows, windows, holds)
    ways = 1 if name != "dot" else -1
    expected = definition(*rows, pairs, most, lambda u, w: ways * _value(name, u, w))
    tables = [_mixed(left), _mixed(right)]
    assert batch(query, *tables) == expected
    assert batch(query, *tables, threads=2) == expected
    order = [(s, i) for s, side in enumerate(rows) for i in range(len(side))]
    shuffle.shuffle(order)
    assert by_pushes(query, tables, _each_in_turn(order)) == expected


def _value(name: str, left: Any, right: Any) -> float:
    value = oracle.measure("vectors", name, left[0], right[0])
    assert value is not None
    return value


def _mixed(rows: Any) -> pa.Table:
    columns = {
        "t": pa.array([t for t, _, _ in rows], pa.int64()),
        "v": pa.array([v for _, v, _ in rows], pa.list_(pa.float64())),
        "x": pa.array([x for _, _, x in rows], pa.float64()),
    }
    return pa.table(columns)


def test_results_wait_until_no_better_partner_can_come() -> None:
    a, b = streams((10, 10))
    query = wj.join(a, b, on=wj.l1(a["v"], b["v"]) <= 5, nearest=1, select=[a["v"], b["v"]])
    rows = [pa.table({"t": [t], "v": [[v]]}) for t, v in ((5, 0), (3, 4), (4, 2), (6, 1))]
    with query.open() as session:
        session.push("a", rows[0])
        assert len(session.push("b", rows[1])) == 0
        assert session.state_bytes > 0
        assert len(session.push("b", rows[2])) == 0
        out = session.push("b", rows[3]).to_pylist()
        assert out == [{"a_v": [0], "b_v": [2]}]  # b at 6 is later than a at 5
        assert session.close().to_pylist() == [{"a_v": [0], "b_v": [1]}]
        assert session.metrics["results"] == 2
    assert "of every row the 1 nearest partners" in query.explain()


def test_payload_of_rows_that_wait_is_kept() -> None:
    a, b = streams((0, 3))
    query = wj.join(a, b, on=wj.l1(a["v"], b["v"]) <= 9, nearest=2, select=[a["t"], b["v"]])
    with query.open() as session:
        session.push("b", {"t": [1, 2, 3], "v": [[7.0], [5.0], [6.0]]})
        session.push("a", {"t": [4], "v": [[5.5]]})
        session.push("a", {"t": [50], "v": [[0.0]]})  # now rows of b before 47 leave the window
        assert session.metrics["streams"]["b"]["state_rows"] == 0
        out = session.push("b", {"t": [60], "v": [[0.0]]}).to_pylist()
    assert out == [{"a_t": 4, "b_v": [5.0]}, {"a_t": 4, "b_v": [6.0]}]


def test_iterating_gives_what_waits_at_the_end() -> None:
    a, b = streams((10, 10))
    query = wj.join(a, b, on=wj.l1(a["v"], b["v"]) <= 5, nearest=1)
    source = [{"t": [1], "v": [[1.0]]}, {"t": [2], "v": [[1.0]]}]
    assert sum(len(found) for found in query.iterate({"a": source, "b": source})) == 3


@pytest.mark.parametrize("limit", [2**53 + 1, 2**63, 10**400])
@pytest.mark.parametrize(("family", "name", "sign"), MEASURES)
def test_thresholds_may_lie_beyond_all_doubles(
    family: str, name: str, sign: int, limit: int
) -> None:
    rows = [(1, [1, 2]), (2, [2, 3]), (3, [0, 3])]
    a, b = streams((5, 5))
    measure = getattr(wj, name)(a["v"], b["v"])
    every = [(i, j) for i in range(3) for j in range(3)]
    expected = definition(
        rows, rows, every, 1, lambda x, y: sign * (oracle.measure(family, name, x, y) or 0)
    )
    arrow = pa.list_(pa.float32()) if family == "vectors" else pa.list_(pa.int64())
    tables = [table(rows, arrow), table(rows, arrow)]
    near = measure <= limit if sign > 0 else measure >= -limit
    query = wj.join(a, b, on=near, nearest=1)
    assert batch(query, *tables) == expected
    in_turn = [(s, i) for i in range(3) for s in range(2)]
    assert by_pushes(query, tables, in_turn) == expected
    beyond = wj.join(a, b, on=measure >= limit if sign > 0 else measure <= -limit, nearest=1)
    assert batch(beyond, *tables) == by_pushes(beyond, tables, in_turn) == []


@pytest.mark.parametrize("most", [0, -1, True, "three"])
def test_nearest_takes_a_number(most: Any) -> None:
    a, b = streams((1, 1))
    with pytest.raises(wj.QueryError, match="give how many partners a row keeps, 1 or more"):
        wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 1, nearest=most)


def test_nearest_refuses_what_it_cannot_rank() -> None:
    a, b = streams((1, 1))
    c = wj.stream("c", time="t", window=1)
    near = wj.l2(a["v"], b["v"]) <= 1
    with pytest.raises(wj.QueryError, match="is for joins of two streams, not of 3"):
        wj.join(a, b, c, on=[near, a["k"] == c["k"]], nearest=1)
    for on in ([a["k"] == b["k"]], [near, wj.l1(a["v"], b["v"]) <= 1]):
        with pytest.raises(wj.QueryError, match="one condition that compares a distance or simil"):
            wj.join(a, b, on=on, nearest=1)
    own = wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= a["r"], nearest=1)
    schema = pa.schema([("t", pa.int64()), ("v", pa.list_(pa.float32())), ("r", pa.float64())])
    with pytest.raises(wj.QueryError, match="with a constant number"):
        own.bind({"a": schema, "b": schema})


def test_nearest_is_not_for_hosts() -> None:
    from windjoin.arrow import place

    a, b = streams((1, 1))
    schema = pa.schema([("t", pa.int64()), ("v", pa.list_(pa.float32()))])
    query = wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 1, nearest=1)
    with pytest.raises(wj.QueryError, match="partners of a row lie on several of them"):
        query.run({"a": schema.empty_table(), "b": schema.empty_table()}, hosts=2)
    with pytest.raises(wj.QueryError, match="partners of a row lie on several of them"):
        place(query, {"a": schema, "b": schema}, hosts=2, strategy="single")
