"""Times and windows of any unit, counted in whole ticks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.binding import BoundQuery
from windjoin.errors import DataError, QueryError, SchemaError


def bind_times(
    types: list[Any], windows: list[Any], units: Any = (None, None), closed: Any = "both"
) -> BoundQuery:
    streams = [
        wj.stream(name, time="t", window=window, unit=unit)
        for name, window, unit in zip("ab", windows, units, strict=True)
    ]
    schemas = {
        n: pa.schema([("t", t), ("k", pa.int64())]) for n, t in zip("ab", types, strict=True)
    }
    on = streams[0]["k"] == streams[1]["k"]
    return wj.join(*streams, on=on, closed=closed).bind(schemas)


@pytest.mark.parametrize(
    ("closed", "window", "types", "expected"),
    [
        ("both", "1500us", ["ms", "s"], 1),
        ("right", "1500us", ["ms", "s"], 1),
        ("right", "2ms", ["ms", "s"], 1),
        ("both", "2ms", ["ms", "s"], 2),
        ("right", "0s", ["ms", "s"], 0),
        ("right", "1ns", ["ms", "s"], 0),
        ("both", "2ms", ["s", "ns"], 2_000_000),
    ],
)
def test_windows_are_exact_in_the_finest_unit(
    closed: Any, window: str, types: list[str], expected: int
) -> None:
    arrow: list[Any] = [pa.timestamp(unit) for unit in types]  # type: ignore[call-overload]
    bound = bind_times(arrow, [window, "1s"], closed=closed)
    assert bound.spec.streams[0].window == expected
    assert bound.time_unit == ("ns" if "ns" in types else "ms")


@given(st.integers(0, 50), st.integers(0, 30), st.sampled_from(("both", "right")))
def test_whole_ticks_mean_what_the_window_means(age: int, half_ticks: int, closed: Any) -> None:
    """A window of half milliseconds on times in milliseconds."""
    ms = pa.timestamp("ms")
    bound = bind_times([ms, ms], [timedelta(microseconds=500 * half_ticks), "0s"], closed=closed)
    inside = 2 * age <= half_ticks if closed == "both" else age == 0 or 2 * age < half_ticks
    assert (age <= bound.spec.streams[0].window) == inside


def test_integer_times_with_units_meet_timestamps() -> None:
    bound = bind_times([pa.int32(), pa.timestamp("ms")], [5, "2s"], ("s", None))
    assert (bound.time_unit, [s.window for s in bound.spec.streams]) == ("ms", [5000, 2000])
    data = pa.table({"t": pa.array([1, None, 2], pa.int32()), "k": [1, 2, 3]})
    prepared = bound.prepare(0, data)
    assert prepared.rows.time.tolist() == [1000, 0, 2000]
    assert prepared.null_time is not None
    assert prepared.null_time.tolist() == [False, True, False]
    assert prepared.rows.usable is not None
    assert prepared.rows.usable.tolist() == [True, False, True]


def test_plain_integer_times_have_no_unit() -> None:
    bound = bind_times([pa.int64(), pa.uint16()], [5, 3], closed="right")
    assert bound.time_unit is None
    assert [s.window for s in bound.spec.streams] == [4, 2]


def test_a_time_beyond_int64_is_an_error_with_its_row() -> None:
    bound = bind_times([pa.timestamp("s"), pa.timestamp("ns")], ["5s", "2s"])
    times = pa.array([0, None, 2**40], pa.int64()).view(pa.timestamp("s"))
    data = pa.table({"t": times, "k": [1, 2, 3]})
    message = "stream 'a', time column 't', row 7: 1099511627776000000000 ns does not fit int64"
    with pytest.raises(DataError, match=message):
        bound.prepare(0, data, first_row=5)
    a = wj.stream("a", time="t", window="5s", where=lambda a: a["k"] < 3)
    b = wj.stream("b", time="t", window="5s")
    other = pa.schema([("t", pa.timestamp("ns")), ("k", pa.int64())])
    kept = wj.join(a, b, on=a["k"] == b["k"]).bind({"a": data.schema, "b": other}).prepare(0, data)
    assert kept.rows.usable is not None
    assert kept.rows.usable.tolist() == [True, False, False]
    plain = bind_times([pa.uint64(), pa.int64()], [5, 5])
    data = pa.table({"t": pa.array([2**63], pa.uint64()), "k": [1]})
    with pytest.raises(DataError, match="9223372036854775808 ticks does not fit int64"):
        plain.prepare(0, data)


S, INT = pa.timestamp("s"), pa.int64()


@pytest.mark.parametrize(
    ("types", "windows", "units", "error", "message"),
    [
        (
            [pa.float64(), S],
            ["1s", "1s"],
            (None, None),
            SchemaError,
            "time column 't' is double; a",
        ),
        (
            [pa.date32(), S],
            ["1s", "1s"],
            (None, None),
            SchemaError,
            "is date32.*timestamp or an in",
        ),
        ([S, S], ["1s", "1s"], ("s", None), SchemaError, "unit='s' is for integer times"),
        (
            [INT, S],
            [1, "1s"],
            (None, None),
            SchemaError,
            "'a' has integer times without a unit and",
        ),
        ([S, INT], ["1s", 1], (None, None), SchemaError, "give stream 'b' unit="),
        ([INT, INT], [1, 1], ("s", None), SchemaError, "stream 'b' has integer times without a un"),
        (
            [S, pa.timestamp("s", "UTC")],
            ["1s", "1s"],
            (None, None),
            SchemaError,
            "with and without",
        ),
        (
            [INT, INT],
            ["1s", 1],
            (None, None),
            SchemaError,
            "window '1s' is a duration but time col",
        ),
        ([S, S], ["1s", 5], (None, None), SchemaError, 'for example window="5s"'),
        ([pa.timestamp("ns"), S], ["200000w", "1s"], (None, None), QueryError, "more than int64"),
        ([INT, INT], [2**63, 1], (None, None), QueryError, r"\(ticks\); the longest is 9223372036"),
    ],
)
def test_times_that_do_not_fit_are_named(
    types: Any, windows: Any, units: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        bind_times(types, windows, units)
