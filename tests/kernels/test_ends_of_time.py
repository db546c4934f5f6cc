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
FIRST, LAST = -(2**63), 2**63 - 1
NEAR = 12
ENDS = (st.integers(FIRST, FIRST + NEAR), st.integers(LAST - NEAR, LAST))


def rows_at(times: Any) -> Any:
    """Rows in order of time."""
    return st.lists(st.tuples(times, st.integers(0, 2)), min_size=1, max_size=8).map(sorted)


ROWS = rows_at(ENDS[0] | ENDS[1])
AT_ONE_END = st.sampled_from(ENDS).flatmap(lambda end: st.tuples(rows_at(end), rows_at(end)))
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
