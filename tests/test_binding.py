"""What the kernels are told, played through by hand, against the meaning of the condition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.binding import BoundQuery, Prepared
from windjoin.errors import DataError, QueryError, SchemaError
from windjoin.expressions import Column, Comparison, Constant, Expression
from windjoin.kernels.spec import (
    Between,
    BytesColumn,
    Compare,
    Equal,
    Function,
    NotEqual,
    Opaque,
)
from windjoin.output import table_fetch

from .typed_values import TYPES, ColumnType, arithmetic, both, compare, families, negation

FAMILIES = families()
NUMBERS = [name for name in FAMILIES["number"] if name != "null"]
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
A, B = (wj.stream(name, time="t", window=10) for name in "ab")
X, Y = A["x"], B["y"]


def table(name: str, column: ColumnType, raw: list[Any]) -> pa.Table:
    """A table of a time column and one other, which starts inside its buffers."""
    array = column.array([None, *raw, None])[1:-1]
    return pa.table({"t": pa.array(range(len(raw)), pa.int64()), name: array})


def operand_values(prepared: list[Prepared], operand: Any, row: int) -> Any:
    return prepared[operand.stream].rows.columns[operand.column][row]


def key_value(prepared: list[Prepared], key: Any, row: int) -> Any:
    column = prepared[key.stream].rows.keys[key.key]
    if isinstance(column, BytesColumn):
        return column.data[column.offsets[row] : column.offsets[row + 1]].tobytes()
    return int(column[row])


def true_for(predicate: Any, prepared: list[Prepared], rows: dict[int, int]) -> bool:
    """Whether one predicate of the spec holds, read from its definition."""
    if isinstance(predicate, Opaque):
        one = {s: np.array([rows[s]], np.int64) for s in predicate.streams}
        return bool(predicate.evaluate(one)[0])
    if isinstance(predicate, Function):
        values = [operand_values(prepared, o, rows[o.stream]) for o in predicate.operands]
        return bool(predicate.function(*values))
    sides = predicate.left, predicate.right
    if isinstance(predicate, (Equal, NotEqual)):
        assert sides[0].space == sides[1].space
        left, right = (key_value(prepared, k, rows[k.stream]) for k in sides)
        return (left == right) == isinstance(predicate, Equal)
    left, right = (operand_values(prepared, o, rows[o.stream]) for o in sides)
    if predicate.dtype == "int64":
        left, right = int(left), int(right)
    if isinstance(predicate, Compare):
        return bool(compare(predicate.operator, left, right))
    with np.errstate(all="ignore"):
        return bool(predicate.low <= left - right <= predicate.high)


def outcome(bound: BoundQuery, tables: list[pa.Table]) -> list[list[bool]]:
    """For every row of the first stream and every row of the second: do they join?"""
    prepared = [bound.prepare(number, data) for number, data in enumerate(tables)]
    for number, one in enumerate(prepared):
        spec = bound.spec.streams[number]
        assert [c.dtype.name for c in one.rows.columns] == list(spec.columns)
        forms = ["bytes" if isinstance(k, BytesColumn) else k.dtype.name for k in one.rows.keys]
        assert forms == list(spec.keys)
    usable = [
        np.ones(len(p.rows), bool) if p.rows.usable is None else p.rows.usable for p in prepared
    ]
    predicates = bound.spec_with(table_fetch(tables)).predicates
    return [
        [
            bool(usable[0][i] and usable[1][j])
            and all(true_for(p, prepared, {0: i, 1: j}) for p in predicates)
            for j in range(len(tables[1]))
        ]
        for i in range(len(tables[0]))
    ]


def joined(on: Any, tables: list[pa.Table], streams: Any = (A, B)) -> list[list[bool]]:
    bound = wj.join(*streams, on=on).bind(
        {s.name: t.schema for s, t in zip(streams, tables, strict=True)}
    )
    return outcome(bound, tables)


@st.composite
def two_columns(draw: Any, names: list[str]) -> tuple[list[ColumnType], list[list[Any]]]:
    types = [TYPES[draw(st.sampled_from(names))] for _ in range(2)]
    raw = [draw(st.lists(st.none() | st.sampled_from(t.pool), max_size=6)) for t in types]
    return types, raw


def meanings(types: list[ColumnType], raw: list[list[Any]]) -> tuple[list[Any], list[Any]]:
    left, right = ([t.means(v) for v in vs] for t, vs in zip(types, raw, strict=True))
    return left, right


def tables_of(types: list[ColumnType], raw: list[list[Any]]) -> list[pa.Table]:
    return [table("x", types[0], raw[0]), table("y", types[1], raw[1])]


@pytest.mark.parametrize(
    ("first", "second"),
    [(x, y) for names in FAMILIES.values() for x, y in itertools.product(names, names)],
)
def test_comparison_of_every_pair_of_types_is_exact(first: str, second: str) -> None:
    types = [TYPES[first], TYPES[second]]
    raw = [[None, *t.pool] for t in types]
    left, right = meanings(types, raw)
    for operator in OPERATORS:
        expected = [[compare(operator, x, y) is True for y in right] for x in left]
        on = Comparison(operator, X, Y)  # type: ignore[arg-type]
        assert joined(on, tables_of(types, raw)) == expected


@given(st.data(), st.sampled_from(sorted(FAMILIES)), st.sampled_from(OPERATORS))
def test_comparisons_may_be_mirrored_and_denied(data: Any, family: str, operator: Any) -> None:
    types, raw = data.draw(two_columns(FAMILIES[family]))
    left, right = meanings(types, raw)
    expected = [[compare(operator, x, y) is True for y in right] for x in left]
    mirrored: Any = MIRRORED[operator]
    assert joined(Comparison(mirrored, Y, X), tables_of(types, raw)) == expected
    denied = [[negation(compare(operator, x, y)) is True for y in right] for x in left]
    assert joined(~Comparison(operator, X, Y), tables_of(types, raw)) == denied


LIMITS = [0, 1, -1, 5, 2**63, 2**64, -(2**65), 0.5, -1.5, 2.0**60, math.inf, -math.inf, 0.1]
LIMITS += [Decimal("0.5"), Decimal("1E3"), Decimal("-0.1")]


def differs(operator: str, x: Any, y: Any, limit: Any, wrap: Callable[[Any], Any]) -> Any:
    difference = arithmetic("-", x, y)
    exact: Any = Fraction(limit) if isinstance(limit, Decimal) else limit
    if isinstance(difference, Fraction) and isinstance(limit, float) and math.isfinite(limit):
        exact = Fraction(repr(limit))
    return compare(operator, None if difference is None else wrap(difference), exact)


@given(two_columns(NUMBERS), st.sampled_from(OPERATORS), st.sampled_from(LIMITS))
def test_bounded_difference_of_numbers_is_exact(drawn: Any, operator: Any, limit: Any) -> None:
    types, raw = drawn
    left, right = meanings(types, raw)
    constant = Constant(limit)
    mirrored: Any = MIRRORED[operator]
    forms: list[tuple[Expression, Callable[[Any], Any]]] = [
        (Comparison(operator, X - Y, constant), lambda d: d),
        (Comparison(mirrored, constant, X - Y), lambda d: d),
        (Comparison(operator, -(X - Y), constant), lambda d: -d),
        (Comparison(operator, Y - X, constant), lambda d: -d),
        (Comparison(operator, abs(X - Y), constant), abs),
        (Comparison(mirrored, constant, abs(-(Y - X))), abs),
    ]
    for expression, wrap in forms:
        expected = [[differs(operator, x, y, limit, wrap) is True for y in right] for x in left]
        assert joined(expression, tables_of(types, raw)) == expected, expression


@given(two_columns(NUMBERS), st.sampled_from(LIMITS), st.sampled_from(LIMITS))
def test_bands_of_one_difference_are_merged(drawn: Any, low: Any, high: Any) -> None:
    types, raw = drawn
    left, right = meanings(types, raw)
    for closed, above, below in (("both", ">=", "<="), ("neither", ">", "<")):
        expected = [
            [
                both(
                    differs(above, x, y, low, lambda d: d), differs(below, x, y, high, lambda d: d)
                )
                is True
                for y in right
            ]
            for x in left
        ]
        tables = tables_of(types, raw)
        one = (X - Y).between(low, high, closed=closed)  # type: ignore[arg-type]
        two: list[Any] = [
            Comparison(above, X - Y, Constant(low)),  # type: ignore[arg-type]
            Comparison(MIRRORED[below], Y - X, Constant(_minus(high))),  # type: ignore[arg-type]
        ]
        for on in (one, two):
            assert joined(on, tables) == expected
            schemas = {"a": tables[0].schema, "b": tables[1].schema}
            predicates = wj.join(A, B, on=on).bind(schemas).spec.predicates
            if isinstance(predicates[0], Between):
                assert len(predicates) == 1


def _minus(limit: Any) -> Any:
    return limit.copy_negate() if isinstance(limit, Decimal) else -limit


INSTANTS = FAMILIES["instant"][:-1]
LENGTHS = ["0s", "1ms", "1.5s", "1d", timedelta(microseconds=-1), np.timedelta64(3, "ns")]
SECONDS = [0, Fraction(1, 1000), Fraction(3, 2), 86_400, Fraction(-1, 10**6), Fraction(3, 10**9)]


@given(
    st.data(),
    st.sampled_from([INSTANTS, ["zoned_ms", "zoned_us"], ["duration_s", "duration_ns"]]),
    st.sampled_from(OPERATORS),
    st.sampled_from(list(zip(LENGTHS, SECONDS, strict=True))),
)
def test_bounded_difference_of_times_is_exact(
    data: Any, names: list[str], operator: Any, limit: tuple[Any, Any]
) -> None:
    types, raw = data.draw(two_columns(names))
    raw = [
        [v if v is not None and abs(t.means(v)) <= 10**9 else None for v in values]
        for t, values in zip(types, raw, strict=True)
    ]
    left, right = meanings(types, raw)
    for measure, wrap in ((X - Y, lambda d: d), (abs(X - Y), abs)):
        expected = [
            [
                (x is not None and y is not None)
                and compare(operator, wrap(x - y), Fraction(limit[1])) is True
                for y in right
            ]
            for x in left
        ]
        on = Comparison(operator, measure, Constant(limit[0]))
        assert joined(on, tables_of(types, raw)) == expected


def test_a_time_too_far_for_the_common_unit_is_an_error_with_its_row() -> None:
    types = [TYPES["timestamp_s"], TYPES["timestamp_ns"]]
    tables = tables_of(types, [[0, 2**40], [0]])
    with pytest.raises(
        DataError,
        match=r"stream 'a', `a\[\"x\"\]`, row 1: value 1099511627776000000000 ns does not fit"
        " int64; exclude such rows with where=",
    ):
        joined(abs(X - Y) <= "1s", tables)
    assert joined(X >= Y, tables) == [[True], [True]]  # an order needs no common unit


# -- derived operands, filters, functions ---------------------------------------------------------

SMALL = ["int8", "int64", "uint8", "float32", "float64", "decimal128_5_2"]


@given(two_columns(SMALL), st.sampled_from(OPERATORS), st.sampled_from("+-*%"))
def test_derived_operands_are_exact(drawn: Any, operator: Any, step: Any) -> None:
    types, raw = drawn
    raw = [[None if v is None or abs(v) > 2**40 else v for v in values] for values in raw]
    left, right = meanings(types, raw)
    derived = {"+": X * 2 + 1, "-": X * 2 - 1, "*": X * 2 * 3, "%": X * 2 % 3}[step]
    constant = {"+": 1, "-": 1, "*": 3, "%": 3}[step]
    expected = [
        [
            compare(operator, arithmetic(step, arithmetic("*", x, 2), constant), y) is True
            for y in right
        ]
        for x in left
    ]
    assert joined(Comparison(operator, derived, Y), tables_of(types, raw)) == expected


@pytest.mark.parametrize("condition", [X * 2 == Y, X * 2 < Y, X * 2 - Y < 5])
def test_a_derived_integer_beyond_int64_is_an_error_with_its_row(condition: Expression) -> None:
    tables = tables_of([TYPES["int64"], TYPES["int64"]], [[1, None, 2**62], [1]])
    message = r"stream 'a', `a\[\"x\"\] \* 2`, row 12: value 9223372036854775808 does not fit int64"
    bound = wj.join(A, B, on=condition).bind({"a": tables[0].schema, "b": tables[1].schema})
    with pytest.raises(DataError, match=message):
        bound.prepare(0, tables[0], first_row=10)


def test_rows_the_filter_excludes_cannot_be_in_error() -> None:
    a = wj.stream("a", time="t", window=10, where=lambda a: a["x"] < 100)
    tables = tables_of([TYPES["int64"], TYPES["int64"]], [[1, 2**62], [2]])
    assert joined(a["x"] * 2 == Y, tables, (a, B)) == [[True], [False]]


@given(two_columns(NUMBERS), st.sampled_from(OPERATORS))
def test_where_filters_its_stream(drawn: Any, operator: Any) -> None:
    types, raw = drawn
    left, right = meanings(types, raw)
    a = wj.stream("a", time="t", window=10, where=Comparison(operator, X, Constant(1)))
    expected = [
        [compare(operator, x, 1) is True and compare("!=", x, y) is True for y in right]
        for x in left
    ]
    assert joined(X != Y, tables_of(types, raw), (a, B)) == expected


@given(two_columns(NUMBERS))
def test_conditions_without_an_index_are_evaluated_as_they_stand(drawn: Any) -> None:
    types, raw = drawn
    left, right = meanings(types, raw)
    cases: list[tuple[Expression, Callable[[Any, Any], Any]]] = [
        ((X < Y) | (X == 1), lambda x, y: _or(compare("<", x, y), compare("==", x, 1))),
        (~((X < Y) & (X < 5)), lambda x, y: negation(both(compare("<", x, y), compare("<", x, 5)))),
        (~((X < Y) | (X > 5)), lambda x, y: negation(_or(compare("<", x, y), compare(">", x, 5)))),
        (X + Y > 3, lambda x, y: compare(">", arithmetic("+", x, y), 3)),
        (X.is_null() | (Y == 1), lambda x, y: _or(x is None, compare("==", y, 1))),
        (Y.between(X, 5), lambda x, y: both(compare("<=", x, y), compare("<=", y, 5))),
        (~~(X <= Y), lambda x, y: compare("<=", x, y)),
    ]
    for on, meaning in cases:
        expected = [[meaning(x, y) is True for y in right] for x in left]
        assert joined(on, tables_of(types, raw)) == expected, on


def _or(x: bool | None, y: bool | None) -> bool | None:
    return negation(both(negation(x), negation(y)))


@given(two_columns(["int8", "int64", "uint8", "float32", "float64", "bool", "null"]))
def test_udf_becomes_a_function_of_plain_columns(drawn: Any) -> None:
    types, raw = drawn
    left, right = meanings(types, raw)
    on = wj.udf(lambda x, y: x > y, X, Y)
    expected = [[compare(">", x, y) is True for y in right] for x in left]
    if "null" in (types[0].name, types[1].name) or _widest(raw) <= 2**53:
        assert joined(on, tables_of(types, raw)) == expected


def _widest(raw: list[list[Any]]) -> float:
    return max((abs(v) for values in raw for v in values if v is not None and v == v), default=0)


def test_udf_of_expressions_over_several_streams_is_evaluated_on_pairs() -> None:
    tables = tables_of([TYPES["int64"], TYPES["float64"]], [[1, None], [0.5, 3.0]])
    assert joined(wj.udf(lambda d: d > 0.0, X - Y), tables) == [[True, False], [False, False]]


# -- what becomes what -----------------------------------------------------------------------------


def lowered(on: Any, left: str, right: str) -> list[Any]:
    tables = tables_of([TYPES[left], TYPES[right]], [[], []])
    schemas = {"a": tables[0].schema, "b": tables[1].schema}
    return list(wj.join(A, B, on=on).bind(schemas).spec.predicates)


@pytest.mark.parametrize(
    ("on", "left", "right", "expected"),
    [
        (X == Y, "int64", "uint64", Equal),
        (X == Y, "int64", "float64", Equal),
        (X == Y, "string", "dictionary", Equal),
        (X == Y, "decimal128_30_4", "decimal256_60_10", Equal),
        (X == Y, "timestamp_s", "timestamp_ns", Equal),
        (X != Y, "int8", "int64", NotEqual),
        (X != Y, "decimal128_30_4", "int64", NotEqual),
        (X != Y, "int64", "float64", Opaque),
        (X != Y, "int64", "uint64", Opaque),
        (X < Y, "int64", "float64", Compare),
        (X < Y, "uint64", "float64", Compare),
        (X < Y, "int64", "uint64", Compare),
        (X < Y, "date32", "timestamp_ns", Compare),
        (X < Y, "string", "string", Opaque),
        (X < Y, "decimal128_30_4", "int64", Opaque),
        (abs(X - Y) <= 5, "int64", "int8", Between),
        (abs(X - Y) <= 5, "uint64", "uint64", Between),
        (abs(X - Y) <= 5, "int64", "float64", Between),
        (abs(X - Y) <= 0.05, "decimal128_5_2", "decimal128_5_2", Between),
        (abs(X - Y) <= 5, "int64", "uint64", Opaque),
        (abs(X - Y) > 5, "int64", "int64", Opaque),
        (abs(X - Y) > -1, "int64", "int64", Between),
        (~(abs(X - Y) > "5s"), "timestamp_s", "timestamp_ns", Between),
        ((X - Y).between("-5s", "1m"), "timestamp_s", "date32", Between),
        (X - Y == 5, "int64", "int64", Between),
        (X - Y != 5, "int64", "int64", Opaque),
        ((X == Y) | (X > Y), "int64", "int64", Opaque),
        (wj.udf(min, X, Y), "int64", "float64", Function),
    ],
)
def test_conditions_become_the_predicate_that_has_an_index(
    on: Any, left: str, right: str, expected: type
) -> None:
    (predicate,) = lowered(on, left, right)
    assert type(predicate) is expected
    assert predicate.text == repr(on)


def test_integer_bounds_are_rounded_inwards() -> None:
    (band,) = lowered(abs(X - Y) < 2.5, "int64", "int64")
    assert (band.low, band.high, band.dtype) == (-2, 2, "int64")
    (band,) = lowered(abs(X - Y) < 2, "int64", "int64")
    assert (band.low, band.high) == (-1, 1)
    (band,) = lowered(abs(X - Y) < 0.5, "float64", "int64")
    assert (band.low, band.high) == (math.nextafter(-0.5, 0), math.nextafter(0.5, 0))
    (band,) = lowered(abs(X - Y) <= -1, "int64", "int64")
    assert band.low > band.high
    (band,) = lowered(abs(X - Y) < "1ms", "timestamp_us", "timestamp_us")
    assert (band.low, band.high) == (-999, 999)


def test_keys_that_meet_share_a_space() -> None:
    streams = [wj.stream(name, time="t", window=1) for name in "abc"]
    a, b, c = streams
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("s", pa.string())])
    on = [a["k"] == b["k"], a["s"] == b["s"], b["s"] == c["s"], a["k"] == c["k"], b["k"] != c["k"]]
    bound = wj.join(*streams, on=on).bind(dict.fromkeys("abc", schema))
    spaces = {
        (number, form): space
        for number, stream in enumerate(bound.spec.streams)
        for form, space in zip(stream.keys, stream.spaces, strict=True)
    }
    assert all(len(stream.keys) == 2 for stream in bound.spec.streams)
    assert len({spaces[number, "int64"] for number in range(3)}) == 1
    assert len({spaces[number, "bytes"] for number in range(3)}) == 1
    assert len(set(spaces.values())) == 2


def test_an_operand_used_twice_is_made_once() -> None:
    on = [X < Y, X * 1 < Y, X - Y > -5, X != Y]
    tables = tables_of([TYPES["int64"], TYPES["int64"]], [[], []])
    schemas = {"a": tables[0].schema, "b": tables[1].schema}
    spec = wj.join(A, B, on=on).bind(schemas).spec
    assert spec.streams[0].columns == ("int64", "int64")
    assert spec.streams[1].columns == ("int64",)


def test_opaque_predicates_have_no_data_before_they_are_given_some() -> None:
    (predicate,) = lowered((X < Y) | (X > Y), "int64", "int64")
    with pytest.raises(RuntimeError, match=r"take the spec from BoundQuery\.spec_with"):
        predicate.evaluate({0: np.zeros(0, np.int64), 1: np.zeros(0, np.int64)})


# -- times and windows -----------------------------------------------------------------------------


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


# -- schemas, output -------------------------------------------------------------------------------

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])


@pytest.mark.parametrize(
    ("schemas", "message"),
    [
        ({"a": SCHEMA}, "no data for stream 'b'"),
        ({"a": SCHEMA, "b": SCHEMA, "bb": SCHEMA}, "'bb' is not a stream of this query; did you"),
        ({"a": SCHEMA, "b": 5}, "schema of stream 'b' is int, not a pyarrow.Schema"),
        ({"a": SCHEMA, "b": pa.schema([("t", INT), ("x", INT)])}, "stream 'b' has no column 'y'"),
    ],
)
def test_schemas_must_be_those_of_the_streams(schemas: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        wj.join(A, B, on=X == Y).bind(schemas)


def test_a_condition_must_be_true_or_false() -> None:
    schema = pa.schema([("t", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
    streams = wj.stream("a", time="t", window=1, where=lambda a: a["x"] + 1), B
    with pytest.raises(SchemaError, match=r'`a\["x"\] \+ 1` is not a condition: .* is integer'):
        wj.join(*streams, on=X == Y).bind({"a": schema, "b": schema})


def test_data_must_have_the_bound_types() -> None:
    bound = wj.join(A, B, on=X == Y).bind({"a": SCHEMA, "b": SCHEMA})
    data = pa.table({"t": [1], "x": [1.5]})
    with pytest.raises(SchemaError, match="stream 'a': column 'x' is double but the query was"):
        bound.prepare(0, data)


def test_nothing_is_copied_that_need_not_be() -> None:
    bound = wj.join(A, B, on=X < Y).bind({"a": SCHEMA, "b": SCHEMA})
    batch = pa.record_batch({"t": pa.array([1, 2]), "x": pa.array([3, 4])})
    rows = bound.prepare(0, batch).rows
    for array, column in ((rows.time, "t"), (rows.columns[0], "x")):
        address = batch.column(column).buffers()[1].address
        assert array.__array_interface__["data"][0] == address  # type: ignore[attr-defined]
    assert rows.usable is None


def test_all_columns_leave_with_their_types() -> None:
    left = pa.table(
        {
            "t": pa.array([1, 2], pa.int64()),
            "x": pa.array([3, 4]),
            "word": pa.array(["u", "v"]).dictionary_encode(),
            "when": pa.array([0, 1], pa.timestamp("ms", "UTC")),
            "list": pa.array([[1], [2, 3]]),
            "name": pa.chunked_array([["p"], ["q"]]),
        }
    )
    right = pa.table({"t": [5], "y": [6]})
    bound = wj.join(A, B, on=X < Y).bind({"a": left.schema, "b": right.schema})
    result = bound.gather([left, right], [np.array([1, 0, 1]), np.array([0, 0, 0])])
    assert result.schema == bound.schema
    for name in left.column_names:
        column = result.column(f"a_{name}")
        assert column.type == left.schema.field(name).type
        assert column.to_pylist() == [left.column(name).to_pylist()[i] for i in (1, 0, 1)]
    assert result.column("b_y").to_pylist() == [6, 6, 6]


def test_layouts_that_cannot_be_gathered_are_replaced() -> None:
    views = pa.array(["p", None], pa.string_view())
    data = pa.table(
        {
            "t": pa.array([1, 2], pa.int64()),
            "x": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), views),
            "y": views,
            "bin": pa.array([b"q", b"r"], pa.binary_view()),
            "list": pa.array([["a"], []], pa.list_(pa.string_view())),
            "big": pa.array([["a"], []], pa.large_list(pa.string_view())),
            "pair": pa.array([["a"], ["b"]], pa.list_(pa.string_view(), 1)),
            "struct": pa.array([{"s": "u"}, None], pa.struct([("s", pa.string_view())])),
            "map": pa.array([[("k", "v")], []], pa.map_(pa.string(), pa.string_view())),
            "words": pa.DictionaryArray.from_arrays(pa.array([0, 1]), views),
        }
    )
    on = (X == Y) | (A["y"] < B["words"])
    bound = wj.join(A, B, on=on).bind({"a": data.schema, "b": data.schema})
    assert outcome(bound, [data, data]) == [[True, False], [False, False]]
    result = bound.gather([data, data], [np.array([1, 0]), np.array([0, 0])])
    result.validate(full=True)
    for name in data.column_names:
        expected = [data.column(name).to_pylist()[i] for i in (1, 0)]
        assert result.column(f"a_{name}").to_pylist() == expected
    assert result.schema.field("a_y").type == pa.large_string()
    words = result.schema.field("a_words").type
    assert words == pa.dictionary(pa.int64(), pa.large_string())


@pytest.mark.slow
def test_more_text_than_one_chunk_holds_is_gathered_in_several() -> None:
    text = "x" * 2**20
    left = pa.table({"t": [1], "x": [1], "s": [text]})
    right = pa.table({"t": [1], "y": [2]})
    bound = wj.join(A, B, on=X < Y, select=[A["s"]]).bind({"a": left.schema, "b": right.schema})
    rows = np.zeros(2**11 + 8, np.int64)
    column = bound.gather([left, right], [rows, rows]).column("a_s")
    assert (len(column), column.num_chunks) == (len(rows), 2)
    assert column[-1].as_py() == text


def test_select_takes_only_what_it_needs() -> None:
    select = [B["y"], X.alias("left"), (X - Y).alias("gap"), (X < Y).alias("less")]
    bound = wj.join(A, B, on=X < Y, select=select).bind({"a": SCHEMA, "b": SCHEMA})
    assert bound.payload == [["x"], ["y"]]
    data = pa.table({"t": [1, 2], "x": [1, None], "y": [10, 20]})
    asked: list[Any] = []

    def fetch(stream: int, names: list[str], rows: Any) -> list[Any]:
        asked.append((stream, names))
        return table_fetch([data, data])(stream, names, rows)

    result = bound.gather_with(fetch, [np.array([0, 1]), np.array([1, 1])])
    assert asked == [(0, ["x"]), (1, ["y"])]
    assert result.to_pydict() == {
        "b_y": [20, 20], "left": [1, None], "gap": [-19, None], "less": [True, None]
    }  # fmt: skip


def test_selected_expressions_keep_their_kind() -> None:
    schema = pa.schema(
        [
            ("t", pa.timestamp("ms")), ("d", pa.decimal128(10, 2)), ("day", pa.date32()),
            ("z", pa.timestamp("s", "UTC")), ("n", pa.null()), ("u", pa.uint64()),
        ]
    )  # fmt: skip
    a, b = (wj.stream(name, time="t", window="1s") for name in "ab")
    select = [
        (a["t"] - b["t"]).alias("gap"),
        (a["t"] + "1us").alias("later"),
        (a["z"] + "1s").alias("zoned"),
        (a["d"] * b["d"]).alias("product"),
        (a["d"] / 4).alias("quarter"),
        (a["day"] - b["day"]).alias("days"),
        (a["day"] + "1d").alias("tomorrow"),
        (a["n"] + b["d"]).alias("nothing"),
        (a["u"] * 1).alias("u"),
    ]
    bound = wj.join(a, b, on=a["d"] == b["d"], select=select).bind({"a": schema, "b": schema})
    data = pa.table(
        {
            "t": pa.array([5, None], pa.timestamp("ms")),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "day": pa.array([1, 3], pa.int32()).view(pa.date32()),
            "z": pa.array([0, 1], pa.timestamp("s", "UTC")),
            "n": pa.nulls(2),
            "u": pa.array([1, None], pa.uint64()),
        }
    )
    rows = [np.array([0, 1]), np.array([0, 0])]
    result = bound.gather([data, data], rows)
    assert result.schema.types == [
        pa.duration("ms"), pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.decimal128(38, 4),
        pa.float64(), pa.duration("s"), pa.timestamp("s"), pa.null(), pa.int64(),
    ]  # fmt: skip
    assert result.column("product").to_pylist() == [Decimal("2.2500"), None]
    assert result.column("gap").to_pylist() == [timedelta(0), None]
    assert result.column("days").to_pylist() == [timedelta(0), timedelta(days=2)]
    assert result.column("quarter").to_pylist() == [0.375, None]
    assert result.column("tomorrow").to_pylist()[0].isoformat() == "1970-01-03T00:00:00"
    assert result.column("nothing").to_pylist() == [None, None]
    result.validate(full=True)


def test_a_selected_value_that_does_not_fit_is_an_error_with_its_row() -> None:
    bound = wj.join(A, B, on=X < Y, select=[(X * Y).alias("p")]).bind({"a": SCHEMA, "b": SCHEMA})
    data = pa.table({"t": [1], "x": [2**62], "y": [2]})
    with pytest.raises(
        DataError, match=r"result row 0: value 9223372036854775808 does not fit int"
    ):
        bound.gather([data, data], [np.array([0]), np.array([0])])


def test_too_many_decimal_places_are_refused() -> None:
    schema = pa.schema([("t", INT), ("x", pa.decimal256(76, 40)), ("y", pa.decimal256(76, 40))])
    with pytest.raises(SchemaError, match="has 80 decimal places, Arrow holds 76"):
        wj.join(A, B, on=X < Y, select=[(X * Y).alias("p")]).bind({"a": schema, "b": schema})


def test_result_names_must_differ() -> None:
    a, ab = wj.stream("a", time="t", window=1), wj.stream("a_b", time="t", window=1)
    schemas = {"a": pa.schema([("t", INT), ("b_t", INT)]), "a_b": pa.schema([("t", INT)])}
    with pytest.raises(SchemaError, match="2 columns called 'a_b_t'"):
        wj.join(a, ab, on=a["b_t"] == ab["t"]).bind(schemas)


def test_pair_masks_ask_for_their_columns_only() -> None:
    schema = pa.schema([("t", INT), ("x", INT), ("y", INT), ("z", INT)])
    bound = wj.join(A, B, on=(X < Y) | (A["z"] == B["z"])).bind({"a": schema, "b": schema})
    assert bound.evaluated == [["x", "z"], ["y", "z"]]


def test_null_columns_join_nothing() -> None:
    tables = tables_of([TYPES["null"], TYPES["string"]], [[None], ["a"]])
    for on in (X == Y, X != Y, X < Y):
        assert joined(on, tables) == [[False]]


def test_column_is_found_by_stream_name() -> None:
    assert Column("a", "x").same(X)
