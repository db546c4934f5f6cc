"""Rows as dictionaries join as tables do; durations in words are those in letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.durations import parse_duration
from windjoin.errors import InputError, QueryError, SchemaError
from windjoin.inputs import as_table

A, B = (wj.stream(name, time="t", window=10) for name in "ab")
ROWS = st.lists(
    st.fixed_dictionaries({"t": st.integers(0, 30)}, optional={"k": st.none() | st.integers(0, 3)}),
    min_size=1,
    max_size=8,
)


@given(ROWS, ROWS)
def test_pushed_rows_join_as_tables_do(left: list[Any], right: list[Any]) -> None:
    query = wj.join(A, B, on=A["k"] == B["k"])
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    tables = {
        name: pa.Table.from_pylist(rows, schema)
        for name, rows in zip("ab", (left, right), strict=True)
    }
    expected = query.run(tables).to_pylist()
    found = []
    with query.open(schemas={"a": schema, "b": schema}, lateness=100) as session:
        found += session.push("a", left).to_pylist()
        for row in right:
            found += session.push("b", {"k": None, **row}).to_pylist()

    def key(row: Any) -> str:
        return str(sorted(row.items(), key=str))

    assert sorted(map(key, found)) == sorted(map(key, expected))


def test_rows_may_have_dictionaries_of_weights() -> None:
    a, b = (wj.stream(name, time="t", window="1h") for name in "ab")
    query = wj.join(a, b, on=wj.inner_product(a["words"], b["words"]) >= 1.0)
    now = datetime(2026, 1, 1)
    with query.open() as session:
        session.push("a", [{"t": now, "words": {"oil": 0.5, "gas": 1.0}}, {"t": now}])
        found = session.push("b", {"t": now, "words": {"oil": 2.0}})
        again = session.push("b", {"t": now, "words": None})
    assert found.num_rows == 1
    assert again.num_rows == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"t": 1}, 5], r"row 1 is 5 \(int\), the first is a dictionary"),
        ([{"t": 1}, {"t": "x"}], r"column 't', row 1: 'x' is no value of the type of the rows"),
    ],
)
def test_rows_that_do_not_fit_are_named(rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"stream 'calls': .*{message}"):
        as_table(rows, "calls")


def test_a_row_that_does_not_fit_leaves_the_session_as_it_was() -> None:
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    query = wj.join(A, B, on=A["k"] == B["k"])
    with query.open(schemas={"a": schema, "b": schema}) as session:
        with pytest.raises(InputError, match="column 'k', row 0: 'x' is no int64"):
            session.push("a", {"t": 1, "k": "x"})
        with pytest.raises(SchemaError, match="has no column 'k'; did you mean 'kk'"):
            session.push("a", {"t": 1, "kk": 1})
        session.push("a", {"t": 1, "k": 1})
        assert session.push("b", {"t": 1, "k": 1}).num_rows == 1


@pytest.mark.parametrize(
    ("words", "letters"),
    [
        ("5 minutes", "5m"),
        ("1 hour 30 min", "1h30m"),
        ("2 weeks", "2w"),
        ("1 day", "1d"),
        ("250 milliseconds", "250ms"),
        ("3 secs", "3s"),
        ("1D", "1d"),
        ("7 microseconds", "7us"),
    ],
)
def test_durations_in_words(words: str, letters: str) -> None:
    assert parse_duration(words) == parse_duration(letters)


def test_unknown_units_are_still_refused() -> None:
    with pytest.raises(QueryError, match="unknown unit 'fortnights'"):
        parse_duration("2 fortnights")
