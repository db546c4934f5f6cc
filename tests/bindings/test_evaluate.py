"""The evaluator against plain Python on every type, operator and null."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.checking import check
from windjoin.errors import DataError, QueryError, SchemaError
from windjoin.evaluate import evaluate, holds
from windjoin.expressions import Binary, Column, Comparison, Constant, Expression

from tests.typed_values import (
    TYPES,
    ColumnType,
    arithmetic,
    both,
    compare,
    families,
    nearest,
    negation,
)

FAMILIES = families()
NUMBERS = [name for name in FAMILIES["number"] if name != "null"]
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")


@st.composite
def columns(
    draw: Any, names: list[str], count: int = 2
) -> tuple[list[ColumnType], list[list[Any]]]:
    """Column types and their raw values, all of one length, some null."""
    types = [TYPES[draw(st.sampled_from(names))] for _ in range(count)]
    length = draw(st.integers(0, 6))
    raw = [
        draw(st.lists(st.none() | st.sampled_from(t.pool), min_size=length, max_size=length))
        for t in types
    ]
    return types, raw


def value_of(expression: Expression, types: list[ColumnType], raw: list[list[Any]]) -> list[Any]:
    """The evaluator's answer as plain Python values."""
    names = "xyz"
    data = {
        names[i]: t.array([None, *values, None])[1:-1]  # an offset into the buffers
        for i, (t, values) in enumerate(zip(types, raw, strict=True))
    }
    schema = pa.schema([(name, array.type) for name, array in data.items()])
    values = evaluate(check(expression, {"a": schema}), lambda column: data[column.name])
    shape = (len(raw[0]),)
    got = np.broadcast_to(np.asarray(values.data), shape).tolist()
    valid = [True] * len(raw[0]) if values.valid is None else np.broadcast_to(values.valid, shape)
    step = values.kind.step
    if values.kind.exact and (values.kind.family != "integer" or step != 1):
        got = [Fraction(value) * step for value in got]
    return [value if ok else None for value, ok in zip(got, valid, strict=True)]


X, Y, Z = (Column("a", name) for name in "xyz")


@pytest.mark.parametrize(
    ("first", "second"),
    [(x, y) for names in FAMILIES.values() for x, y in itertools.product(names, names)],
)
def test_comparison_of_every_pair_of_types_is_exact(first: str, second: str) -> None:
    types = [TYPES[first], TYPES[second]]
    pairs = list(itertools.product(*([None, *t.pool] for t in types)))
    raw = [[x for x, _ in pairs], [y for _, y in pairs]]
    for operator in OPERATORS:
        expected = [compare(operator, types[0].means(x), types[1].means(y)) for x, y in pairs]
        assert value_of(Comparison(operator, X, Y), types, raw) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(NUMBERS, NUMBERS)))
def test_arithmetic_of_every_pair_of_types_is_exact(first: str, second: str) -> None:
    types = [TYPES[first], TYPES[second]]
    pairs = list(itertools.product(*([None, *t.pool] for t in types)))
    raw = [[x for x, _ in pairs], [y for _, y in pairs]]
    for operator in ("+", "-", "*", "/", "//", "%"):
        expected = [arithmetic(operator, types[0].means(x), types[1].means(y)) for x, y in pairs]
        assert value_of(Binary(operator, X, Y), types, raw) == expected  # type: ignore[arg-type]


@given(st.data(), st.sampled_from(sorted(FAMILIES)), st.sampled_from(OPERATORS))
def test_comparison_equals_python(data: Any, family: str, operator: Any) -> None:
    types, raw = data.draw(columns(FAMILIES[family]))
    expected = [
        compare(operator, types[0].means(x), types[1].means(y)) for x, y in zip(*raw, strict=True)
    ]
    assert value_of(Comparison(operator, X, Y), types, raw) == expected


@given(columns(NUMBERS), st.sampled_from(("+", "-", "*", "/", "//", "%")))
def test_arithmetic_equals_python(drawn: Any, operator: Any) -> None:
    types, raw = drawn
    expected = [
        arithmetic(operator, types[0].means(x), types[1].means(y))
        for x, y in zip(*raw, strict=True)
    ]
    got = value_of(Binary(operator, X, Y), types, raw)
    assert got == expected


@given(
    columns(NUMBERS, 3), st.sampled_from(("+", "-", "*")), st.sampled_from(("+", "-", "*", "//"))
)
def test_nested_arithmetic_never_wraps(drawn: Any, inner: Any, outer: Any) -> None:
    types, raw = drawn
    meanings = [[t.means(value) for value in values] for t, values in zip(types, raw, strict=True)]
    expected = [
        arithmetic(outer, arithmetic(inner, x, y), z) for x, y, z in zip(*meanings, strict=True)
    ]
    assert value_of(Binary(outer, Binary(inner, X, Y), Z), types, raw) == expected


@given(columns(NUMBERS, 1))
def test_negation_and_absolute_equal_python(drawn: Any) -> None:
    types, raw = drawn
    meanings = [types[0].means(x) for x in raw[0]]
    assert value_of(-X, types, raw) == [None if m is None else -m for m in meanings]
    assert value_of(abs(X), types, raw) == [None if m is None else abs(m) for m in meanings]


@given(columns(NUMBERS, 1), st.sampled_from(OPERATORS))
def test_constants_compare_exactly(drawn: Any, operator: Any) -> None:
    types, raw = drawn
    for constant in (0, 2**63, -(2**70), 1.5, 0.1, 2.0**63, math.inf):
        meant: Any = constant
        if types[0].name.startswith("decimal") and math.isfinite(constant):
            meant = Fraction(repr(constant))  # a float meets decimals as it is written
        expected = [compare(operator, types[0].means(x), meant) for x in raw[0]]
        assert value_of(Comparison(operator, X, Constant(constant)), types, raw) == expected


def test_a_float_constant_meets_decimals_as_it_is_written() -> None:
    types = [TYPES["decimal128_5_2"]]
    assert value_of(X == 0.1, types, [[Decimal("0.10")]]) == [True]
    assert value_of(X >= 0.1, types, [[Decimal("0.10")]]) == [True]
    assert value_of(X.between(0.1, 0.1), types, [[Decimal("0.10")]]) == [True]


@given(columns(["bool", "null"]))
def test_logic_has_three_values(drawn: Any) -> None:
    types, raw = drawn
    pairs = list(zip(*raw, strict=True))
    assert value_of(X & Y, types, raw) == [both(x, y) for x, y in pairs]
    expected = [negation(both(negation(x), negation(y))) for x, y in pairs]
    assert value_of(X | Y, types, raw) == expected
    assert value_of(~X & Y, types, raw) == [both(negation(x), y) for x, y in pairs]


@given(columns([*NUMBERS, "string", "null", "duration_s"], 1))
def test_is_null_counts_nan(drawn: Any) -> None:
    types, raw = drawn
    assert value_of(X.is_null(), types, raw) == [types[0].means(x) is None for x in raw[0]]


@given(columns(NUMBERS, 3), st.sampled_from(("both", "left", "right", "neither")))
def test_between_is_two_comparisons(drawn: Any, closed: Any) -> None:
    types, raw = drawn
    meanings = [[t.means(value) for value in values] for t, values in zip(types, raw, strict=True)]
    expected = [
        both(
            compare(">=" if closed in ("both", "left") else ">", x, low),
            compare("<=" if closed in ("both", "right") else "<", x, high),
        )
        for x, low, high in zip(*meanings, strict=True)
    ]
    assert value_of(X.between(Y, Z, closed=closed), types, raw) == expected


TEMPORAL = [*FAMILIES["instant"][:-1]]
DURATIONS = ["duration_s", "duration_ns"]


@given(columns(TEMPORAL))
def test_difference_of_times_is_exact(drawn: Any) -> None:
    types, raw = drawn
    expected = [
        arithmetic("-", types[0].means(x), types[1].means(y)) for x, y in zip(*raw, strict=True)
    ]
    assert value_of(X - Y, types, raw) == expected


@given(st.data(), st.sampled_from(("+", "-")))
def test_times_plus_durations_are_exact(data: Any, operator: Any) -> None:
    (time,), (times,) = data.draw(columns(TEMPORAL, 1))
    duration = TYPES[data.draw(st.sampled_from(DURATIONS))]
    lengths = [data.draw(st.sampled_from(duration.pool)) for _ in times]
    expected = [
        arithmetic(operator, time.means(x), duration.means(y))
        for x, y in zip(times, lengths, strict=True)
    ]
    assert value_of(Binary(operator, X, Y), [time, duration], [times, lengths]) == expected
    if operator == "+":
        assert value_of(Y + X, [time, duration], [times, lengths]) == expected


@given(columns(DURATIONS))
def test_duration_arithmetic_is_exact(drawn: Any) -> None:
    types, raw = drawn
    meanings = [(types[0].means(x), types[1].means(y)) for x, y in zip(*raw, strict=True)]
    for operator in ("+", "-", "%"):
        expected = [arithmetic(operator, x, y) for x, y in meanings]
        assert value_of(Binary(operator, X, Y), types, raw) == expected  # type: ignore[arg-type]
    floors = [arithmetic("//", x, y) for x, y in meanings]
    assert value_of(X // Y, types, raw) == floors
    step = 1 if types[0].name.endswith("_s") else Fraction(1, 10**9)
    halves = [None if x is None else (x / step // 2) * step for x, _ in meanings]
    assert value_of(X // 2, types, raw) == halves
    assert value_of(3 * X, types, raw) == [None if x is None else 3 * x for x, _ in meanings]
    assert value_of(X * 3, types, raw) == [None if x is None else 3 * x for x, _ in meanings]


def test_quotient_of_durations_is_a_float() -> None:
    types = [TYPES["duration_s"], TYPES["duration_ns"]]
    assert value_of(X / Y, types, [[3, 1, None], [2 * 10**9, 0, 1]]) == [1.5, math.inf, None]


def test_constants_of_every_kind_compare() -> None:
    from datetime import UTC, date, datetime, time, timedelta

    import pandas as pd

    cases: list[tuple[pa.Array, Any]] = [
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ms")), datetime(2024, 1, 1)),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ms")), date(2024, 1, 1)),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ms")), np.datetime64("2024-01-01")),
        (pa.array([datetime(2024, 1, 1)], pa.timestamp("ms")), pd.Timestamp("2024-01-01")),
        (
            pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC")),
            pd.Timestamp("2024-01-01 01:00", tz="Europe/Paris"),
        ),
        (
            pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("s", "Asia/Tokyo")),
            datetime(2024, 1, 1, tzinfo=UTC),
        ),
        (pa.array([timedelta(seconds=90)], pa.duration("ms")), "1m30s"),
        (pa.array([timedelta(seconds=90)], pa.duration("ms")), timedelta(seconds=90)),
        (pa.array([timedelta(seconds=90)], pa.duration("ms")), np.timedelta64(90, "s")),
        (pa.array([timedelta(seconds=90)], pa.duration("ms")), pd.Timedelta(90, "s")),
        (pa.array([time(1, 2, 3)], pa.time32("s")), time(1, 2, 3)),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 1)), Decimal("1.50")),
        (pa.array([5]), np.int8(5)),
        (pa.array([5.5]), np.float32(5.5)),
        (pa.array([True]), True),
        (pa.array(["x"]), "x"),
        (pa.array([b"x"]), b"x"),
    ]
    for array, constant in cases:
        schema = pa.schema([("x", array.type)])
        typed = check(constant == X, {"a": schema})
        assert holds(typed, lambda _, array=array: array)[0].tolist() == [True], (array, constant)
        typed = check(constant != X, {"a": schema})
        assert holds(typed, lambda _, array=array: array)[0].tolist() == [False], (array, constant)


def test_chunks_are_put_together() -> None:
    column = pa.chunked_array([[1, None], [], [3]], pa.int64())
    texts = pa.chunked_array([["a"], ["b", None]])
    data = {"x": column, "y": texts}
    schema = pa.schema([("x", pa.int64()), ("y", pa.string())])
    typed = check((X == 3) | (Y == "a"), {"a": schema})
    assert holds(typed, lambda c: data[c.name])[0].tolist() == [True, False, True]


def test_extension_and_run_end_types_count_as_their_storage() -> None:
    uuids = pa.array([b"0" * 16, b"1" * 16], pa.uuid().storage_type)
    extension = pa.ExtensionArray.from_storage(pa.uuid(), uuids)
    runs = pa.RunEndEncodedArray.from_arrays([2], [7])
    data = {"x": extension, "y": runs}
    schema = pa.schema([(name, array.type) for name, array in data.items()])
    typed = check((X == b"1" * 16) & (Y == 7), {"a": schema})
    assert holds(typed, lambda c: data[c.name])[0].tolist() == [False, True]


def test_int64_without_nulls_is_not_copied() -> None:
    array = pa.array(np.arange(5))
    typed = check(X, {"a": pa.schema([("x", pa.int64())])})
    address = evaluate(typed, lambda _: array).data.__array_interface__["data"][0]
    assert address == array.buffers()[1].address


def test_nearest_double_of_wide_integers() -> None:
    values = evaluate(
        check(X * X * 1.0, {"a": pa.schema([("x", pa.int64())])}), lambda _: pa.array([2**62 + 1])
    )
    assert values.data.tolist() == [nearest((2**62 + 1) ** 2)]


def test_integers_beyond_the_largest_double_are_infinite() -> None:
    power: Expression = X
    for _ in range(17):
        power = power * X
    types, raw = [TYPES["int64"]], [[2**63 - 1, 1, -(2**63)]]
    assert value_of(power + 0.5, types, raw) == [math.inf, 1.5, math.inf]


def test_decimals_beyond_the_largest_double_are_infinite() -> None:
    power: Expression = X
    for _ in range(5):
        power = power * X
    types, raw = (
        [TYPES["decimal256_60_10"]],
        [[Decimal("9" * 50 + ".5"), Decimal(2), Decimal(-9) * 10**49]],
    )
    product = power * X
    assert value_of(product + 0.5, types, raw) == [math.inf, 128.5, -math.inf]
    assert value_of(product > math.inf, types, raw) == [False, False, False]
    assert value_of(product * X < -1e308, types, raw) == [False, False, False]
    assert value_of(product <= Constant(-1e308), types, raw) == [False, False, True]


# -- user functions ---------------------------------------------------------------------------


def test_udf_in_an_expression_is_compiled_and_null_aware() -> None:
    schema = pa.schema([("x", pa.int32()), ("y", pa.float64())])
    data = {"x": pa.array([1, 2, None], pa.int32()), "y": pa.array([0.5, 3.0, 1.0])}
    typed = check(~wj.udf(lambda x, y: x > y, X, Y), {"a": schema})
    assert holds(typed, lambda c: data[c.name])[0].tolist() == [False, True, False]


def test_udf_that_numba_cannot_compile_says_why() -> None:
    schema = pa.schema([("x", pa.int64())])
    with pytest.raises(QueryError, match=r"Numba cannot compile this function(.|\n)*nope"):
        check(wj.udf(lambda x: x.nope > 1, X), {"a": schema})


def test_udf_refuses_integers_beyond_int64() -> None:
    typed = check(wj.udf(lambda x: x > 1, X), {"a": pa.schema([("x", pa.uint64())])})
    with pytest.raises(DataError, match=r'`a\["x"\]`, row 1: value 18446744073709551615 does not'):
        holds(typed, lambda _: pa.array([1, 2**64 - 1], pa.uint64()))


# -- what cannot be compared --------------------------------------------------------------------

SCHEMA = {
    "a": pa.schema(
        [
            ("i", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_()),
            ("bin", pa.binary()), ("t", pa.timestamp("ms")), ("z", pa.timestamp("ms", "UTC")),
            ("d", pa.duration("s")), ("l", pa.list_(pa.int64())), ("day", pa.date32()),
            ("twice", pa.int64()), ("twice", pa.int64()), ("m", pa.decimal128(5, 2)),
        ]
    )
}  # fmt: skip


def column(name: str) -> Column:
    return Column("a", name)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (column("i") == column("s"), "column 'i' of stream 'a' is int64.*is string.*cast the text"),
        (column("i") - column("f") < "30s", "write the length in their own unit, such as 30"),
        (column("i") == "soon", "cast the text column to numbers"),
        (column("b") == column("i"), "is bool.*is int64; compare a boolean with True or False"),
        (column("b") == 1, "1 is integer; compare a boolean with True or False"),
        (column("s") == column("bin"), "text never equals bytes"),
        (column("t") < column("z"), "times with and without a zone cannot be compared"),
        (column("t") - column("z") < "5s", "with and without a zone cannot be subtracted"),
        (column("t") - column("t") < 5, 'write a duration such as "5s"'),
        (column("t") == column("i"), "cast the integers to timestamps"),
        (column("t") < "5s", "is not a time; write one such as"),
        (column("t") < column("d"), "compare the difference of two times with a duration"),
        (column("d") < "soon", "'soon' is not a duration"),
        (column("d") == column("b"), "cast one of them to the type of the other"),
        (column("l") == column("l"), "nested columns cannot be compared"),
        (column("l") + 1 == 2, "nested columns cannot be calculated with"),
        (column("t") + column("t") == column("t"), r"\+ has no meaning here"),
        (column("s") + "x" == "ax", r"\+ has no meaning here"),
        (column("d") * 1.5 == "1s", r"\* has no meaning here"),
        (-column("s") == "x", "- is for numbers and durations"),
        (abs(column("t")) == 1, "abs is for numbers and durations"),
        (column("i") & column("b"), "join conditions, each true or false"),
        (~column("i"), "join conditions, each true or false"),
        (column("persn") == 1, "stream 'a' has no column 'persn'; there are 'i', 'f'"),
        (column("twic") == 1, "no column 'twic'; did you mean 'twice'?"),
        (column("twice") == 1, "has 2 columns called 'twice'; rename all but one"),
        (wj.udf(abs, column("s")), "is string; a user function takes integers, floats and bool"),
        (wj.udf(abs, column("m")), r"is decimal128\(5, 2\); a user function takes"),
    ],
)
def test_what_does_not_fit_is_named(expression: Expression, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        check(expression, SCHEMA)


def test_complex_constants_are_refused() -> None:
    with pytest.raises(QueryError, match=r"constant .* cannot be compared"):
        check(column("f") == np.complex128(1j), SCHEMA)
    with pytest.raises(QueryError, match="use a unit from weeks down to nanoseconds"):
        check(column("t") == np.datetime64("2024-01"), SCHEMA)
