"""Rows as dictionaries join as tables do; durations in words are those in letters."""

from __future__ import annotations

from datetime import UTC, datetime
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


SOME = datetime(2026, 1, 1, 5, 0, 0, 7)
ZONED = SOME.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (SOME, pa.timestamp("us", "UTC"), "it has a zone and the column has none, or the other"),
        (ZONED, pa.timestamp("us"), "it has a zone and the column has none, or the other"),
        (SOME, pa.timestamp("ms"), "would lose data"),
        (SOME, pa.date32(), "a date has no time of day; give a date"),
        (5, pa.timestamp("us"), "an integer is no time; give a datetime"),
    ],
)
def test_times_in_rows_and_lists_are_taken_exactly(value: Any, kind: Any, message: str) -> None:
    schema = pa.schema([("x", kind)])
    with pytest.raises(InputError, match=f"stream 'a': column 'x', row 1: .*{message}"):
        as_table([{"x": None}, {"x": value}], "a", schema)
    assert as_table({"x": [None, value]}, "a", schema).schema.field("x").type != kind
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    query = wj.join(a, b, on=a["x"] == b["x"])
    full = pa.schema([("t", pa.int64()), ("x", kind)])
    refused = pytest.raises(SchemaError, match=r"column 'x' is .* but the query was bound to")
    with query.open({"a": full, "b": full}) as session, refused:
        session.push("a", {"t": [1, 2], "x": [None, value]})


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None], pa.timestamp("us")),
        ([], pa.int64()),
        ([1, None], pa.float64()),
        ([SOME], pa.timestamp("us")),
        ([ZONED], pa.timestamp("us", "UTC")),
        ([SOME.date()], pa.date32()),
        ([SOME.time()], pa.time64("us")),
        ([SOME - SOME], pa.duration("ms")),
    ],
)
def test_lists_have_the_types_that_the_stream_is_known_to_have(values: Any, kind: Any) -> None:
    table = as_table({"x": values}, "a", pa.schema([("x", kind)]))
    assert table.schema.field("x").type == kind
    assert table.column("x").to_pylist() == values


def test_a_list_of_nulls_is_pushed_into_a_column_of_any_type() -> None:
    query = wj.join(A, B, on=A["k"] == B["k"])
    with query.open() as session:
        session.push("a", {"t": [1], "k": [1], "x": [0.5]})
        session.push("a", {"t": [2], "k": [None], "x": [1]})
        session.push("b", {"t": [1], "k": [2]})
        session.push("a", {"t": [3, None], "k": [2, 2], "x": [None, None]})
        assert session.push("b", {"t": [3], "k": [1]}).column("a_x").to_pylist() == [0.5]
        assert session.metrics["null_time"] == 1


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
