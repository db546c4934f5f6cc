"""Derived operands, filters and functions, against the meaning of the condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.errors import DataError
from windjoin.expressions import Comparison, Constant, Expression

from tests.played import (
    NUMBERS,
    OPERATORS,
    A,
    B,
    X,
    Y,
    joined,
    meanings,
    tables_of,
    two_columns,
)
from tests.typed_values import TYPES, arithmetic, both, compare, negation

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
