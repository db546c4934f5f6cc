"""Methods of expressions mean what Python's own functions mean, over every type they take."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.checking import check
from windjoin.cli.conditions import parse_expression
from windjoin.errors import DataError, QueryError, SchemaError
from windjoin.evaluate import evaluate
from windjoin.expressions import Column, Expression

X, Y = Column("a", "x"), Column("a", "y")
WORDS = st.text(alphabet="aAbBßéÉ ΣςK\u212a", max_size=6)
# the tables of zones that Arrow has end with 2037
NAIVE = st.datetimes(datetime(1950, 1, 1), datetime(2037, 12, 31))


def values(expression: Expression, **columns: pa.Array) -> list[Any]:
    """What an expression is for every row, None for null."""
    schema = pa.schema([(name, array.type) for name, array in columns.items()])
    found = evaluate(check(expression, {"a": schema}), lambda column: columns[column.name])
    data = found.data.to_pylist() if isinstance(found.data, pa.Array) else found.data.tolist()
    valid = [True] * len(data) if found.valid is None else found.valid.tolist()
    step = found.kind.step
    exact = found.kind.exact and step != 1
    return [
        (value * step if exact else value) if known else None
        for value, known in zip(data, valid, strict=True)
    ]


@given(st.lists(st.none() | WORDS, max_size=8), WORDS)
def test_methods_of_texts_equal_python(texts: list[str | None], part: str) -> None:
    array = pa.array(texts, pa.string())

    def each(function: Any) -> list[Any]:
        return [None if text is None else function(text) for text in texts]

    assert values(X.str.length(), x=array) == each(len)
    assert values(X.str.contains(part), x=array) == each(lambda text: part in text)
    assert values(X.str.starts_with(part), x=array) == each(lambda text: text.startswith(part))
    assert values(X.str.ends_with(part), x=array) == each(lambda text: text.endswith(part))
    assert values(X.str.strip(), x=array) == each(str.strip)


def test_letters_change_by_unicode() -> None:
    array = pa.array(["Élan", None, "ΣΑ", "straße"])
    assert values(X.str.lower(), x=array) == ["élan", None, "σα", "straße"]
    assert values(X.str.upper(), x=array)[0] == "ÉLAN"


@given(st.lists(st.none() | NAIVE, max_size=8), st.sampled_from([None, "Europe/Paris", "UTC"]))
def test_parts_of_times_equal_python(times: list[datetime | None], zone: str | None) -> None:
    aware = [t if t is None or zone is None else t.replace(tzinfo=ZoneInfo(zone)) for t in times]
    array = pa.array(aware, pa.timestamp("us", zone))
    local = array.to_pylist()  # what Python says of these moments

    def each(function: Any) -> list[Any]:
        return [None if time is None else function(time) for time in local]

    for name in ("year", "month", "day", "hour", "minute", "second", "weekday"):
        got = values(getattr(X.dt, name)(), x=array)
        wanted = each(lambda t: t.weekday() if name == "weekday" else getattr(t, name))  # noqa: B023
        assert got == wanted, name


@given(
    st.lists(st.none() | st.integers(-(10**12), 10**12), max_size=8),
    st.sampled_from(["1s", "15s", "1m", "15m", "1h", "6h", "1d", "7h"]),
)
def test_truncated_times_are_multiples(seconds: list[int | None], every: str) -> None:
    from windjoin.durations import parse_duration

    size = parse_duration(every).nanoseconds // 10**9
    array = pa.array(seconds, pa.int64()).view(pa.timestamp("s"))
    expected = [None if second is None else second // size * size for second in seconds]
    assert values(X.dt.truncate(every), x=array) == expected


def test_weeks_begin_on_monday_and_days_where_they_are() -> None:
    array = pa.array([datetime(2026, 11, 19, 12)], pa.timestamp("s"))
    monday = int(datetime(2026, 11, 16).timestamp() - datetime(1970, 1, 1).timestamp())
    assert values(X.dt.truncate("1w"), x=array) == [monday]
    tokyo = pa.array([0], pa.int64()).view(pa.timestamp("s", "Asia/Tokyo"))  # 09:00 there
    assert values(X.dt.truncate("1d"), x=tokyo) == [-9 * 3600]


NUMBERS = st.sampled_from([0, 1, 2, -1, 2**53 + 1, 2**63 - 1])


@given(
    st.lists(st.none() | NUMBERS, max_size=8),
    st.lists(NUMBERS | st.sampled_from([0.5, 2.0**53, 2**70, 1.0]), max_size=4),
    st.booleans(),
)
def test_is_in_is_equality_with_any(
    column: list[int | None], wanted: list[Any], many: bool
) -> None:
    if many:
        wanted = [*[int(w) for w in wanted], *range(100, 120), 2**80]
    array = pa.array(column, pa.int64())
    expected = [None if x is None else any(x == w for w in wanted) for x in column]
    assert values(X.is_in(wanted), x=array) == expected


def test_is_in_takes_what_is_compared() -> None:
    texts = pa.array(["a", None, "b"])
    assert values(X.is_in(["b", "c"]), x=texts) == [False, None, True]
    assert values(X.is_in([f"w{i}" for i in range(30)] + ["a"]), x=texts) == [True, None, False]
    times = pa.array([datetime(2026, 1, 1)], pa.timestamp("ms"))
    assert values(X.is_in(["2026-01-01"]), x=times) == [True]
    assert values(X.is_in(np.array([5, 7])), x=pa.array([7, 8])) == [True, False]
    assert values(X.is_in(pa.array([5, 7])), x=pa.array([7.0, 7.5])) == [True, False]
    assert values(X.is_in([0.1]), x=pa.array([Decimal("0.10")])) == [True]
    assert values(X.is_in([]), x=pa.array([1, None])) == [False, None]
    assert values(~X.is_in([1]), x=pa.array([1, 2])) == [False, True]


def test_casts() -> None:
    assert values(X.cast("int64"), x=pa.array(["5", None, "-7"])) == [5, None, -7]
    assert values(X.cast(pa.float64()), x=pa.array(["1.5"])) == [1.5]
    assert values(X.cast("string"), x=pa.array([5, None])) == ["5", None]
    assert values(X.cast("int8"), x=pa.array([2.0])) == [2]
    assert values(X.cast("int64"), x=pa.array([True, False, None])) == [1, 0, None]
    assert values(X.cast("date32"), x=pa.array(["1970-01-03"])) == [2 * 86_400]
    assert values(X.cast("timestamp[ms]"), x=pa.array([1500], pa.int64())) == [1.5]
    assert values((X * 2).cast("string"), x=pa.array([Decimal("1.5")])) == ["3.0"]


@pytest.mark.parametrize(
    ("array", "to", "message"),
    [
        (pa.array(["1", "2", "x", "y"]), "int64", r"row 2: 'x' is no int64 without a change"),
        (pa.array([1.0, 1.5]), "int64", r"row 1: 1.5 is no int64 without a change"),
        (pa.array([1, 300]), "uint8", r"row 1: 300 is no uint8"),
        (pa.array([1500], pa.duration("ms")), "duration[s]", "row 0: .* is no duration"),
    ],
)
def test_a_cast_that_would_change_a_value_is_refused(
    array: pa.Array, to: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        values(X.cast(to), x=array)


@given(
    st.lists(st.tuples(st.none() | NUMBERS, st.none() | st.floats(allow_infinity=False))),
)
def test_coalesce_gives_the_first_that_is_there(rows: list[tuple[Any, Any]]) -> None:
    def there(value: Any) -> bool:
        return value is not None and value == value

    x = pa.array([row[0] for row in rows], pa.int64())
    y = pa.array([row[1] for row in rows], pa.float64())
    expected = [next((float(v) for v in row if there(v)), None) for row in rows]
    assert values(wj.coalesce(X, Y), x=x, y=y) == expected
    ending = [next((float(v) for v in (*row, 7.5) if there(v)), None) for row in rows]
    assert values(wj.coalesce(X, Y, 7.5), x=x, y=y) == ending


def test_integers_of_both_signs_stay_exact() -> None:
    large = pa.array([2**63 + 1, None, 2**53 + 1], pa.uint64())
    signed = pa.array([-1, 2**53 + 1, 2**53], pa.int64())
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    rows = {"a": {"t": [1, 1, 1], "x": large, "y": signed}}
    rows["b"] = {"t": [1] * 5, "z": pa.array([2**63 + 1, 2**53, 2**53 + 1, 0, 1], pa.uint64())}
    for made, expected in (
        (wj.coalesce(a["x"], 0), [(0, 0), (1, 3), (2, 2)]),
        (wj.coalesce(a["x"], a["y"]), [(0, 0), (1, 2), (2, 2)]),
        (wj.greatest(a["x"], a["y"]), [(0, 0), (2, 2)]),
        (wj.least(a["x"], a["y"]), [(2, 1)]),
    ):
        found = wj.join(a, b, on=made == b["z"]).indices(rows)
        assert sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == expected


def test_coalesce_of_texts_decimals_and_times() -> None:
    assert values(wj.coalesce(X, "none"), x=pa.array(["a", None])) == ["a", "none"]
    decimals = pa.array([Decimal("0.5"), None])
    assert [float(v) for v in values(wj.coalesce(X, 3), x=decimals)] == [0.5, 3.0]
    days = pa.array([date(1970, 1, 2), None])
    times = pa.array([None, datetime(1970, 1, 1, 1)], pa.timestamp("s"))
    assert values(wj.coalesce(X, Y), x=days, y=times) == [86_400, 3_600]
    nothing = pa.nulls(2)
    assert values(wj.coalesce(X, Y), x=nothing, y=pa.array([1, None])) == [1, None]


def test_texts_beside_times_are_times() -> None:
    naive = pa.array([datetime(2026, 1, 1, 12)], pa.timestamp("us"))
    assert values(X >= "2026-01-01 12:00", x=naive) == [True]
    assert values(X.between("2026-01-01", "2026-01-01T12:00:00.000001"), x=naive) == [True]
    assert values(X < "2026-01-01T12:00:00.000000001", x=naive) == [True]
    paris = pa.array([0], pa.int64()).view(pa.timestamp("s", "Europe/Paris"))
    assert values(X == "1970-01-01 01:00", x=paris) == [True]  # local time, as pandas has it
    assert values(X == "1970-01-01T00:00+00:00", x=paris) == [True]
    assert values(X == "1970-01-02", x=pa.array([date(1970, 1, 2)])) == [True]


@given(st.lists(st.tuples(st.none() | NUMBERS, st.none() | st.floats(allow_infinity=False))))
def test_greatest_and_least_equal_python(rows: list[tuple[Any, Any]]) -> None:
    x = pa.array([row[0] for row in rows], pa.int64())
    y = pa.array([row[1] for row in rows], pa.float64())

    def each(take: Any) -> list[Any]:
        there = [all(v is not None and v == v for v in row) for row in rows]
        return [take(map(float, row)) if ok else None for row, ok in zip(rows, there, strict=True)]

    assert values(wj.greatest(X, Y), x=x, y=y) == each(max)
    assert values(wj.least(X, Y), x=x, y=y) == each(min)
    assert values(wj.least(X, 5), x=x) == [None if r[0] is None else min(r[0], 5) for r in rows]


def test_greatest_of_times_is_in_the_finer_unit() -> None:
    x = pa.array([5], pa.int64()).view(pa.timestamp("s"))
    y = pa.array([5001], pa.int64()).view(pa.timestamp("ms"))
    assert [float(v) for v in values(wj.greatest(X, Y), x=x, y=y)] == [5.001]


TIME = pa.array([datetime(2026, 1, 1)], pa.timestamp("s"))
ZONED = TIME.cast(pa.timestamp("s", "Europe/Paris"))


@pytest.mark.parametrize(
    ("expression", "array", "message"),
    [
        (X == "noon", TIME, "'noon' is not a time; write one such as"),
        (X == "2026", TIME, "'2026' is not a time"),
        (X == "2026-01-01T00:00+01:00", TIME, "have no zone; leave the offset out"),
        (X == "2026-10-25 02:30", ZONED, "is no single moment in Europe/Paris"),
        (X == "2026-01-01 00:00:00.123456789", ZONED, "is not a time"),
        (X.str.lower() == "a", TIME, r"\.str\.lower\(\) is for texts"),
        (X.dt.hour() == 1, pa.array(["a"]), r"\.dt\.hour\(\) is for timestamp and time columns"),
        (X.dt.year() == 1, pa.array([1]), r"\.dt\.year\(\) is for timestamp and date columns"),
        (X.dt.truncate("1ms") == X, TIME, "is finer than the column"),
        (X.cast("int64") == 1, pa.array([[1]]), "cannot become int64"),
        (X.cast("duration[s]") == "1s", pa.array([True]), r"cannot become duration\[s\]"),
        (X.is_in(["a"]), pa.array([1]), "these cannot be compared"),
        (wj.coalesce(X, "a") == "a", pa.array([1]), "these cannot be compared"),
        (wj.least(X, "a") == "a", pa.array(["b"]), "least is for numbers and times"),
    ],
)
def test_what_does_not_fit_is_named(expression: Expression, array: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        values(expression, x=array)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: X.is_in("abc"), "give a list of constants"),
        (lambda: X.is_in([Y]), "takes constants, got"),
        (lambda: X.is_in([None]), "use .is_null"),
        (lambda: X.is_in([math.nan]), "use .is_null"),
        (lambda: X.cast("integer"), "there is no such type"),
        (lambda: X.cast(5), 'give an Arrow type or the name of one, such as "int64"'),
        (lambda: X.str.contains(5), r"\.str\.contains\(5\): give a text, not int"),
        (lambda: X.dt.truncate("-1h"), "give a length of time above 0"),
        (lambda: wj.coalesce(X), "two values or more, got 1"),
        (lambda: wj.coalesce(1, X), "begin with a column"),
        (lambda: wj.greatest(X), "greatest takes two values or more, got 1"),
    ],
)
def test_what_cannot_be_built_is_named(build: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        build()


TEXTS = [
    'a["k"].is_in([1, 2])',
    'a["k"].is_in(["x"])',
    'a["s"].str.lower() == b["s"].str.strip()',
    'a["s"].str.contains("x y")',
    'a["t"].dt.truncate("15m") == b["t"].dt.truncate("15m")',
    'coalesce(a["x"], a["y"], 0) <= b["x"]',
    'a["s"].cast("int64") == b["k"]',
    'greatest(a["x"], b["x"]) <= 5',
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_shown_can_be_written_in_query_files(text: str) -> None:
    streams = {name: wj.stream(name, time="t", window="5s") for name in "ab"}
    written = eval(text, {**streams, "coalesce": wj.coalesce, "greatest": wj.greatest})
    assert repr(written) == text
    assert repr(parse_expression(text, streams)) == text


def test_query_files_refuse_what_is_not_a_method() -> None:
    streams = {"a": wj.stream("a", time="t", window="5s")}
    with pytest.raises(QueryError, match=r"`a\['x'\].str.__class__` is not one of"):
        parse_expression('a["x"].str.__class__()', streams)
    with pytest.raises(QueryError, match=r"`1` is no column: it has no .str"):
        parse_expression("(1).str.lower()", streams)


@pytest.mark.parametrize("way", ["before", "after", "of"])
@given(st.lists(st.integers(0, 20), max_size=6), st.lists(st.integers(0, 20), max_size=6))
def test_within_counts_from_one_row_to_another(way: str, left: Any, right: Any) -> None:
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    query = wj.join(a, b, on=a["t"].within(4, **{way: b["t"]}))
    found = query.indices(
        {n: {"t": np.array(t, np.int64)} for n, t in {"a": left, "b": right}.items()}
    )
    apart: Any = {
        "before": lambda x, y: y - x,
        "after": lambda x, y: x - y,
        "of": lambda x, y: abs(x - y),
    }
    expected = {
        (i, j)
        for i, x in enumerate(left)
        for j, y in enumerate(right)
        if 0 <= apart[way](x, y) <= 4
    }
    assert set(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == expected


def test_within_takes_durations_and_one_side() -> None:
    a, b = (wj.stream(name, time="t", window="1h") for name in "ab")
    assert repr(a["t"].within("5m", of=b["t"])) == 'abs(a["t"] - b["t"]) <= "5m"'
    query = wj.join(a, b, on=a["t"].within("5m", before=b["t"]))
    bound = query.bind(dict.fromkeys("ab", pa.schema([("t", pa.timestamp("us"))])))
    assert [type(p).__name__ for p in bound.spec.predicates] == ["Between"]
    with pytest.raises(QueryError, match="takes one of before=, after= and of=, got 2"):
        a["t"].within("5m", before=b["t"], after=b["t"])
    with pytest.raises(QueryError, match="takes one of before=, after= and of=, got 0"):
        a["t"].within("5m")


def test_methods_are_joined_by_the_index_of_their_condition() -> None:
    a, b = (wj.stream(name, time="t", window="1h") for name in "ab")
    start = datetime(2026, 1, 1)
    times = [start + timedelta(minutes=m) for m in (0, 10, 40)]
    query = wj.join(
        a,
        b,
        on=[
            a["name"].str.lower() == b["name"].str.lower(),
            a["t"].dt.truncate("30m") == b["t"].dt.truncate("30m"),
        ],
        select=[
            a["name"].str.upper().alias("name"),
            a["t"].dt.truncate("1d").cast("date32").alias("day"),
            b["n"].cast("string").alias("n"),
        ],
    )
    tables = {
        "a": {"t": times, "name": ["Ann", "bob", "ANN"]},
        "b": {"t": times, "name": ["ANN", "BOB", "ann"], "n": [1, 2, 3]},
    }
    found = query.run(tables, ordered=True)
    assert found.to_pylist() == [
        {"name": "ANN", "day": date(2026, 1, 1), "n": "1"},
        {"name": "BOB", "day": date(2026, 1, 1), "n": "2"},
        {"name": "ANN", "day": date(2026, 1, 1), "n": "3"},
    ]
    assert "hash" in query.explain()
    with query.open() as session:
        session.push("a", tables["a"])
        assert session.push("b", tables["b"]).num_rows == 3


@given(
    st.lists(st.none() | st.integers(0, 4), min_size=1, max_size=6),
    st.lists(st.none() | st.integers(0, 4), min_size=1, max_size=6),
)
def test_methods_of_several_streams_are_conditions(
    left: list[int | None], right: list[int | None]
) -> None:
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    tables = {
        name: {
            "t": list(range(len(given))),
            "x": pa.array(given, pa.int64()),
            "f": pa.array([None if x is None else x > 2 for x in given], pa.bool_()),
            "s": pa.array([None if x is None else f"w{x}" for x in given], pa.string()),
        }
        for name, given in (("a", left), ("b", right))
    }

    def first(x: int | None, y: int | None) -> Any:
        return y if x is None else x

    for condition, holds in (
        ((a["x"] + b["x"]).is_in([2, 5]), lambda x, y: None not in (x, y) and x + y in (2, 5)),
        (wj.coalesce(a["f"], b["f"]), lambda x, y: first(x, y) is not None and first(x, y) > 2),
        (wj.coalesce(a["s"], b["s"]).str.ends_with("2"), lambda x, y: first(x, y) == 2),
        ((a["x"] - b["x"]).cast("bool"), lambda x, y: None not in (x, y) and x != y),
    ):
        found = wj.join(a, b, on=condition).indices(tables)
        pairs = set(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
        each = [(i, j) for i in range(len(left)) for j in range(len(right))]
        assert pairs == {(i, j) for i, j in each if holds(left[i], right[j])}, condition


def test_methods_that_give_no_condition_are_refused() -> None:
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    with pytest.raises(QueryError, match=r"is not a condition; compare it with something"):
        wj.join(a, b, on=wj.coalesce(a["s"], b["s"]).str.length())
    with pytest.raises(QueryError, match=r"uses columns of 'a' alone; a condition on one stream"):
        wj.join(a, b, on=a["x"].is_in([2]))
    schema = pa.schema([("t", pa.int64()), ("s", pa.string())])
    with pytest.raises(SchemaError, match=r"is not a condition: coalesce.* is text; compare it"):
        wj.join(a, b, on=wj.coalesce(a["s"], b["s"])).bind({"a": schema, "b": schema})
