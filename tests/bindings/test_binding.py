"""Comparisons of columns: what the kernels are told, against the meaning of the condition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.errors import DataError
from windjoin.expressions import Comparison, Constant, Expression
from windjoin.kernels.spec import (
    Between,
)

from tests.played import (
    FAMILIES,
    MIRRORED,
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


LARGE = ["int64", "uint64", "float64", "decimal128_5_2", "decimal128_30_4"]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(LARGE, LARGE)))
def test_bounded_difference_of_every_pair_of_types_is_exact(first: str, second: str) -> None:
    types = [TYPES[first], TYPES[second]]
    raw = [[None, *t.pool] for t in types]
    tables = tables_of(types, raw)
    left, right = meanings(types, raw)
    for operator, limit in itertools.product(OPERATORS, (5, 0.5, 2**63, -math.inf, Decimal("0.1"))):
        for measure, wrap in ((X - Y, lambda d: d), (abs(X - Y), abs)):
            expected = [[differs(operator, x, y, limit, wrap) is True for y in right] for x in left]
            on = Comparison(operator, measure, Constant(limit))  # type: ignore[arg-type]
            assert joined(on, tables) == expected, on


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
