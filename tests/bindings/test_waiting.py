"""Sessions that learn schemas as they go: wrong rows are refused by the push that brings them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

A, B = (wj.stream(name, time="t", window=10) for name in "ab")
QUERY = wj.join(A, B, on=A["k"] == B["k"])
FIRST = {"t": [1], "k": [1]}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"t": 2, "k": "x"}], "stream 'a': column 'k', row 0: 'x' is no int64"),
        ({"t": [2], "k": ["x"]}, "stream 'a': column 'k' is string but the query was"),
        (pa.table({"t": [2], "k": ["x"]}), "stream 'a': column 'k' is string but the query was"),
        ({"t": [2]}, "stream 'a' has no column 'k'; there is 't'"),
        ({"t": ["x"], "k": [1]}, "stream 'a': column 't' is string but the query was"),
        (pa.table({"t": ["x"], "k": [1]}), "stream 'a': column 't' is string but the query was"),
    ],
)
def test_rows_that_do_not_fit_the_first_are_refused_at_once(rows: Any, message: str) -> None:
    with QUERY.open() as session:
        session.push("a", FIRST)
        with pytest.raises(wj.WindjoinError, match=message):
            session.push("a", rows)
        with pytest.raises(wj.WindjoinError, match=message):
            session.push_many({"a": rows, "b": FIRST})
        assert session.push("b", FIRST).num_rows == 1
        assert session.metrics["rows_in"] == 2


def test_columns_that_the_query_names_must_be_in_the_first_rows() -> None:
    named = wj.join(A, B, on=A["k"] == B["k"], select=[A["t"], A["x"]])
    with named.open() as session:
        with pytest.raises(wj.SchemaError, match="stream 'a' has no column 'x'; there are"):
            session.push("a", FIRST)
        session.push("b", FIRST)
        assert session.push("a", {**FIRST, "x": [5]}).to_pylist() == [{"a_t": 1, "a_x": 5}]
    with QUERY.open(rows_only=True) as session:  # which makes no columns of results
        session.push("a", {**FIRST, "x": [5]})
        session.push("a", FIRST)
        assert session.push("b", FIRST)["a"].tolist() == [0, 1]


def test_columns_that_come_later_are_let_be() -> None:
    with QUERY.open() as session:
        session.push("a", FIRST)
        session.push("a", {"t": [2], "k": [1], "more": [True]})
        assert session.push("b", FIRST).column_names == ["a_t", "a_k", "b_t", "b_k"]


def test_no_rows_are_no_error_once_columns_are_known() -> None:
    with QUERY.open() as session:
        for nothing in ([], {}):
            with pytest.raises(wj.InputError, match="has no columns, and nothing has said yet"):
                session.push("a", nothing)
        session.push("a", FIRST)
        for nothing in ([], {}, {"t": [], "k": []}):
            assert session.push("a", nothing).num_rows == 0
        session.push("b", FIRST)
        assert session.push("a", []).num_rows == 0
    with pytest.raises(wj.InputError, match=r"stream 'b': \{\} has no columns"):
        QUERY.run({"a": FIRST, "b": {}})


@pytest.mark.parametrize("finish", [False, True])
@pytest.mark.parametrize("how", ["left", "full", "anti"])
def test_rows_alone_are_not_left_out_because_nobody_saw_the_other_columns(
    how: Any, finish: bool
) -> None:
    query = wj.join(A, B, on=A["k"] == B["k"], how=how)
    message = "rows of 'a' may come out without partners, but the columns of 'b' are not known"
    session = query.open()
    session.push("a", FIRST)
    if finish:
        session.finish("b")
    with pytest.raises(wj.SessionError, match=f"{message}: push an empty table of 'b' first, or"):
        session.close()
    assert not session.closed
    found = session.push("b", {"t": np.empty(0, np.int64), "k": np.empty(0, np.int64)})
    assert found.num_rows + session.close().num_rows == 1
    with pytest.raises(wj.SessionError, match=message), query.open() as other:
        other.push("a", FIRST)
    assert other.closed


@pytest.mark.parametrize("how", ["inner", "semi", "right", "left"])
def test_sessions_to_which_nothing_came_that_could_leave_close(how: Any) -> None:
    query = wj.join(A, B, on=A["k"] == B["k"], how=how)
    with query.open() as session:
        session.push("b" if how == "left" else "a", FIRST)
        assert session.close().num_rows == 0
    with query.open() as empty:
        pass
    assert empty.closed
