"""Rows at the very ends of int64 are joined to the last tick, on every path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.arrow import place

from tests import similarity_oracle as oracle
from tests.arrow_exchange import carry_out, histogram
from tests.kernels.test_nearest import definition

Row = tuple[int, int]  # time, key
LEAST, LAST = -(2**63), 2**63 - 1
FIRST = LEAST + 1  # of a session, which keeps LEAST for rows without a time
NEAR = 12
ENDS = (st.integers(FIRST, FIRST + NEAR), st.integers(LAST - NEAR, LAST))
WHOLE_ENDS = (st.integers(LEAST, LEAST + NEAR), ENDS[1])


def rows_at(times: Any) -> Any:
    """Rows in order of time."""
    return st.lists(st.tuples(times, st.integers(0, 2)), min_size=1, max_size=8).map(sorted)


ROWS = rows_at(ENDS[0] | ENDS[1])
AT_ONE_END = st.sampled_from(WHOLE_ENDS).flatmap(lambda end: st.tuples(rows_at(end), rows_at(end)))
WINDOWS = st.tuples(*[st.sampled_from([0, 1, 50, 2**62])] * 2)


def table(rows: list[Row]) -> pa.Table:
    times = pa.array([time for time, _ in rows], pa.int64())
    keys = pa.array([key for _, key in rows], pa.int64())
    vectors = pa.array([[float(key)] for _, key in rows], pa.list_(pa.float64(), 1))
    return pa.table({"t": times, "k": keys, "v": vectors, "row": np.arange(len(rows))})


def streams(windows: tuple[int, int]) -> tuple[Any, Any]:
    a, b = (wj.stream(n, time="t", window=w) for n, w in zip("ab", windows, strict=True))
    return a, b


def by_pushes(query: Any, left: list[Row], right: list[Row], **options: Any) -> Any:
    """Row numbers by a session that gets the rows one by one, in order of time; none is late."""
    tables = {"a": table(left), "b": table(right)}
    schemas = {name: rows.schema for name, rows in tables.items()}
    order = sorted((t, name, i) for name, rows in zip("ab", (left, right), strict=True)
                   for i, (t, _) in enumerate(rows))  # fmt: skip
    found: list[tuple[int, int]] = []
    with query.open(schemas, rows_only=True, **options) as session:
        for _, name, row in order:
            out = session.push(name, tables[name].slice(row, 1))
            found += zip(out["a"].tolist(), out["b"].tolist(), strict=True)
        assert session.metrics["rejected"] == 0
        out = session.close()
    return sorted([*found, *zip(out["a"].tolist(), out["b"].tolist(), strict=True)])


@given(left=ROWS, right=ROWS, windows=WINDOWS, most=st.integers(1, 2))
def test_the_nearest_partners_are_given_to_the_last_tick(
    left: list[Row], right: list[Row], windows: tuple[int, int], most: int
) -> None:
    a, b = streams(windows)
    query = wj.join(a, b, on=wj.l1(a["v"], b["v"]) <= 1, nearest=most)
    pairs = oracle.join(left, right, windows, lambda x, y: abs(x - y) <= 1)
    expected = definition(left, right, pairs, most, lambda x, y: abs(x - y))
    assert by_pushes(query, left, right) == expected
    found = query.indices({"a": table(left), "b": table(right)})
    assert sorted(zip(*(rows.tolist() for rows in found.values()), strict=True)) == expected


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups"])
@given(
    left=ROWS,
    right=ROWS,
    windows=WINDOWS,
    lateness=st.sampled_from([0, 5, 50, LAST]),
    ordered=st.booleans(),
)
def test_hosts_join_to_the_last_tick(
    strategy: str,
    left: list[Row],
    right: list[Row],
    windows: tuple[int, int],
    lateness: int,
    ordered: bool,
) -> None:
    a, b = streams(windows)
    query = wj.join(a, b, on=a["k"] == b["k"])
    expected = oracle.join(left, right, windows, lambda x, y: x == y)
    shared: Any = {"hosts": 2, "strategy": strategy, "ordered": ordered}
    assert by_pushes(query, left, right, lateness=lateness, **shared) == expected
    found = query.indices({"a": table(left), "b": table(right)}, **shared)
    assert sorted(zip(*(rows.tolist() for rows in found.values()), strict=True)) == expected


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups"])
@given(left=rows_at(WHOLE_ENDS[0]), right=rows_at(WHOLE_ENDS[0] | WHOLE_ENDS[1]), windows=WINDOWS)
def test_whole_tables_are_joined_from_the_first_tick(
    strategy: str, left: list[Row], right: list[Row], windows: tuple[int, int]
) -> None:
    a, b = streams(windows)
    query = wj.join(a, b, on=a["k"] == b["k"])
    expected = oracle.join(left, right, windows, lambda x, y: x == y)
    tables = {"a": table(left), "b": table(right)}
    for options in ({}, {"hosts": 2, "strategy": strategy}):
        found = query.indices(tables, **options)
        assert sorted(zip(*(rows.tolist() for rows in found.values()), strict=True)) == expected


REFUSED = r"row 1: sessions and windows of rows take no time of -9223372036854775808 ticks, the le"


WAYS: list[tuple[Any, dict[str, Any]]] = [
    *((window, {"rows_only": only}) for window in (50, wj.rows(3)) for only in (False, True)),
    (50, {"hosts": 2}),
    (50, {"memory": "64MB"}),
]


@pytest.mark.parametrize(("window", "options"), WAYS)
@pytest.mark.parametrize("times", [[FIRST, LEAST], [FIRST + 3, LEAST]])
@pytest.mark.parametrize("arrays", [False, True])
def test_sessions_refuse_the_least_time_and_stay_as_they_were(
    window: Any, options: dict[str, Any], times: list[int], arrays: bool
) -> None:
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    rows = {"t": np.array(times), "k": np.array([1, 1])}
    given: Any = rows if arrays else pa.table(rows)
    with query.open(dict.fromkeys("ab", pa.table(rows).schema), lateness=LAST, **options) as s:
        with pytest.raises(wj.DataError, match=REFUSED):
            s.push("a", given)
        with pytest.raises(wj.DataError, match=REFUSED):
            s.push_many({"b": {"t": [1], "k": [1]}, "a": given})
        assert s.metrics["rows_in"] == 0
        s.push("a", {name: column[:1] for name, column in rows.items()})
        assert s.metrics["rows_in"] == 1


def test_rows_that_take_no_part_may_have_the_least_time() -> None:
    a, b = (wj.stream(n, time="t", window=50, where=lambda s: s["k"] > 0) for n in "ab")
    with wj.join(a, b, on=a["k"] == b["k"]).open() as session:
        session.push("b", {"t": [FIRST], "k": [1]})
        assert session.push("a", {"t": [LEAST, FIRST], "k": [0, 1]}).num_rows == 1


def test_windows_of_rows_are_exact_at_the_last_tick() -> None:
    few, long = wj.rows(1), 50
    for windows, expected in (((few, long), []), ((long, few), [(0, 0)])):
        a, b = (wj.stream(n, time="t", window=w) for n, w in zip("ab", windows, strict=True))
        query = wj.join(a, b, on=a["k"] == b["k"])
        two, one = [(LAST - 1, 1), (LAST, 2)], [(LAST, 1)]
        left, right = (two, one) if windows[0] is few else (one, two)
        found = query.indices({"a": table(left), "b": table(right)})
        assert list(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == expected
        assert by_pushes(query, left, right) == expected


def test_a_row_of_the_last_tick_waits_for_the_end() -> None:
    a, b = (wj.stream(n, time="t", window=50) for n in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], nearest=1, direction="backward")
    for finishes in (False, True):
        with query.open(dict.fromkeys("ab", table([]).schema), rows_only=True) as session:
            session.push("b", table([(LAST, 1)]))
            found = [session.push("a", table([(LAST, 1)]))]
            found.append(session.push("b", table([(LAST, 1)])))
            if finishes:
                session.finish("b")
                found.append(session.push("a", table([])))
                assert found[-1]["b"].tolist() == [1]
            found.append(session.close())
        assert np.concatenate([one["b"] for one in found]).tolist() == [1]  # the last to arrive


@pytest.mark.parametrize("options", [{}, {"hosts": 2}])
def test_combinations_without_partners_come_out_at_the_last_tick(options: dict[str, Any]) -> None:
    a, b, c = (wj.stream(name, time="t", window=50) for name in "abc")
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]], missing=[a])
    rows = {"a": [(LAST, 1)], "b": [(LAST - 1, 1), (LAST, 2)], "c": [(LAST, 1), (LAST, 2)]}
    tables = {name: table(some) for name, some in rows.items()}
    assert query.indices(tables)["b"].tolist() == [1]
    with query.open({n: t.schema for n, t in tables.items()}, rows_only=True, **options) as s:
        found = [s.push(name, some) for name, some in tables.items()]
        found.append(s.close())
    assert np.concatenate([one["b"] for one in found]).tolist() == [1]


def test_windows_of_rows_refuse_the_least_time_in_whole_tables() -> None:
    a, b = (wj.stream(name, time="t", window=wj.rows(3)) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    rows = {"t": [5, LEAST], "k": [1, 1]}
    with pytest.raises(wj.DataError, match=REFUSED):
        query.run({"a": rows, "b": rows})


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups"])
@given(sides=AT_ONE_END, windows=WINDOWS, segment=st.sampled_from([None, 1, 5]))
def test_exchanges_join_to_the_last_tick(
    strategy: Any,
    sides: tuple[list[Row], list[Row]],
    windows: tuple[int, int],
    segment: int | None,
) -> None:
    left, right = sides
    a, b = streams(windows)
    query = wj.join(a, b, on=a["k"] == b["k"])
    tables = {"a": table(left), "b": table(right)}
    schemas = {name: rows.schema for name, rows in tables.items()}
    counts = histogram(query, schemas, tables)
    plan, _ = place(
        query, schemas, hosts=2, strategy=strategy, histogram=counts, segment=segment
    )  # fmt: skip
    found = carry_out(plan, tables, np.random.default_rng(1))
    rows = zip(found["a_row"].to_pylist(), found["b_row"].to_pylist(), strict=True)
    assert sorted(rows) == oracle.join(left, right, windows, lambda x, y: x == y)
