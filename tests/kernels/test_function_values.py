"""What users' functions return, what arithmetic means in them, and how they are called."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.kernels.spec import Function, Opaque

from tests.modes import MODES

LEAST, MOST = -(2**63), 2**63 - 1
INTEGERS = [0, 1, -1, 2, 3, -7, 2**53 + 1, 2**62, MOST, LEAST]
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 1e308, 5e-324, math.inf, -math.inf, 2.0**53]
A, B = (wj.stream(name, time="ts", window=50) for name in "ab")


def tables(x: Any, y: Any) -> dict[str, pa.Table]:
    """Streams a and b with a column x each, all rows within each other's windows."""
    return {
        name: pa.table({"ts": range(len(values)), "x": values, "n": range(len(values))})
        for name, values in (("a", pa.array(x)), ("b", pa.array(y)))
    }


def pairs(x: list[Any], y: list[Any], holds: Callable[[Any, Any], bool]) -> Counter[Any]:
    return Counter((i, j) for i, p in enumerate(x) for j, q in enumerate(y) if holds(p, q))


# -- arithmetic ----------------------------------------------------------------------------------


def quotient_is_large(x: float, y: float) -> bool:
    return x / y > 1.0


def remainder_is_number(x: float, y: float) -> bool:
    return x % y == x % y


def sum_is_more(x: int, y: int) -> bool:
    return x + abs(y) + 1 > x


def product_is_positive(x: int, y: int) -> bool:
    return x * y * 1000 - x > 0


def rounded_quotient(x: int, y: int) -> bool:
    return x // y >= 1


def root_is_number(x: float, y: float) -> bool:
    root = math.sqrt(x - y)
    return root == root


def wrapped(value: int) -> int:
    """As int64 has it."""
    return (value - LEAST) % 2**64 + LEAST


def ieee(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


@pytest.mark.parametrize("mode", MODES)
def test_floats_follow_ieee(mode: str) -> None:
    rows = tables(FLOATS, FLOATS)
    query = wj.join(A, B, on=wj.udf(quotient_is_large, A["x"], B["x"]))
    assert Counter(MODES[mode](query, rows)) == pairs(FLOATS, FLOATS, lambda x, y: ieee(x, y) > 1)
    query = wj.join(A, B, on=wj.udf(remainder_is_number, A["x"], B["x"]))
    owed = pairs(FLOATS, FLOATS, lambda x, y: abs(x) < math.inf and y != 0)
    assert Counter(MODES[mode](query, rows)) == owed


@pytest.mark.parametrize("mode", MODES)
def test_integers_wrap_around(mode: str) -> None:
    rows = tables(INTEGERS, INTEGERS)
    query = wj.join(A, B, on=wj.udf(sum_is_more, A["x"], B["x"]))
    owed = pairs(INTEGERS, INTEGERS, lambda x, y: wrapped(x + wrapped(abs(y)) + 1) > x)
    assert Counter(MODES[mode](query, rows)) == owed
    query = wj.join(A, B, on=wj.udf(product_is_positive, A["x"], B["x"]))
    owed = pairs(INTEGERS, INTEGERS, lambda x, y: wrapped(x * y * 1000 - x) > 0)
    assert Counter(MODES[mode](query, rows)) == owed


@pytest.mark.parametrize("mode", MODES)
def test_integers_divided_by_zero_raise(mode: str) -> None:
    query = wj.join(A, B, on=wj.udf(rounded_quotient, A["x"], B["x"]))
    divisors = [value for value in INTEGERS if value]
    owed = pairs(INTEGERS, divisors, lambda x, y: x // y >= 1 if (x, y) != (LEAST, -1) else False)
    assert Counter(MODES[mode](query, tables(INTEGERS, divisors))) == owed
    message = r"rounded_quotient\(-?\d+, 0\) raised ZeroDivisionError: integer division by zero"
    with pytest.raises(wj.FunctionError, match=message) as caught:
        list(MODES[mode](query, tables(INTEGERS, INTEGERS)))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("operation", ["x % y", "divmod(x, y)[1]", "x ** -y - x ** y"])
def test_other_divisions_of_integers_by_zero_raise(operation: str) -> None:
    function = eval(f"lambda x, y: {operation} == 0")
    query = wj.join(A, B, on=wj.udf(function, A["x"], B["x"]))
    query.run(tables([1, -7], [1, 5]))
    with pytest.raises(wj.FunctionError, match=r"lambda\(0, [05]\) raised ZeroDivisionError"):
        query.run(tables([0, 0], [5, 0]))


def test_functions_of_math_give_nan() -> None:
    query = wj.join(A, B, on=wj.udf(root_is_number, A["x"], B["x"]))
    found = query.indices(tables([1.0, 2.0], [1.0, 1.5]))
    assert sorted(zip(found["a"], found["b"], strict=True)) == [(0, 0), (1, 0), (1, 1)]


@numba.njit
def ratio(x: float, y: float) -> float:
    return x / y


@numba.njit(error_model="python")
def strict_ratio(x: float, y: float) -> float:
    return x / y


@numba.njit
def halvings(x: float) -> int:
    if x < 1:
        return 0
    return 1 + halvings(x / 2)


def test_functions_compiled_by_the_user_follow_the_rules() -> None:
    """Whether they were called before or not, as a function or by one, global or not."""
    with pytest.raises(ZeroDivisionError):
        ratio(1.0, 0.0)
    inner = ratio
    rows = tables([1.0], [0.0])
    for function in (
        numba.njit(quotient_is_large),
        lambda x, y: ratio(x, y) > 1,
        lambda x, y: inner(x, y) > 1,
        lambda x, y: halvings(x + 7 + y) == 4,
    ):
        assert len(wj.join(A, B, on=wj.udf(function, A["x"], B["x"])).run(rows)) == 1
    assert len(wj.join(A, B, on=wj.udf(ratio, A["x"], B["x"]) > 1).run(rows)) == 1


def test_options_given_by_the_user_stay() -> None:
    """And code kept of a function with other options is not taken for it."""
    rows = tables([1.0], [0.0])
    strict = numba.njit(error_model="python")(quotient_is_large)
    for function in (strict, lambda x, y: strict_ratio(x, y) > 1):
        query = wj.join(A, B, on=wj.udf(function, A["x"], B["x"]))
        with pytest.raises(wj.FunctionError, match="raised ZeroDivisionError: division by zero"):
            query.run(rows)
    assert len(wj.join(A, B, on=wj.udf(quotient_is_large, A["x"], B["x"])).run(rows)) == 1


# -- what a function returns -----------------------------------------------------------------------


def gap(x: float, y: float) -> float:
    return abs(x - y)


def total(x: int, y: int) -> int:
    return x + y


def maybe(x: int, y: int) -> bool | None:
    if x > 1:
        return x > y
    return None


def maybe_gap(x: int, y: int) -> int | None:
    if x == y:
        return None
    return x - y


@pytest.mark.parametrize("mode", MODES)
def test_numbers_are_compared(mode: str) -> None:
    x, y = [0.0, 0.25, 0.5, 3.0], [0.25, 1.0, 2.75, 3.5]
    for condition, holds in (
        (wj.udf(gap, A["x"], B["x"]) <= 0.25, lambda p, q: abs(p - q) <= 0.25),
        (wj.udf(gap, A["x"], B["x"]) != 0.5, lambda p, q: abs(p - q) != 0.5),
        (B["x"] - 1 < wj.udf(gap, A["x"], B["x"]), lambda p, q: abs(p - q) > q - 1),
        (wj.udf(gap, A["x"], B["x"]).between(0.25, 1), lambda p, q: 0.25 <= abs(p - q) <= 1),
        (~(wj.udf(gap, A["x"], B["x"]) > 1), lambda p, q: abs(p - q) <= 1),
    ):
        found = Counter(MODES[mode](wj.join(A, B, on=condition), tables(x, y)))
        assert found == pairs(x, y, holds), condition


COMPARE = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}
LIMITS = [0, 5, -3, 2.5, 2**53, float(2**53), 2**53 + 1, 2.0**63, -(2.0**63), MOST, LEAST]
LIMITS += [math.inf, -math.inf]


@given(
    operator=st.sampled_from(sorted(COMPARE)),
    limit=st.sampled_from(LIMITS),
    mirrored=st.booleans(),
    real=st.booleans(),
)
def test_a_value_and_a_number_are_compared_exactly(
    operator: str, limit: Any, mirrored: bool, real: bool
) -> None:
    x: list[Any] = [0.0, 2.5, 2.0**53, -3.0] if real else [0, 5, 2**53, 2**53 + 1, MOST, LEAST]
    function, value = (
        (gap, lambda p, q: abs(p - q)) if real else (total, lambda p, q: wrapped(p + q))
    )
    y: list[Any] = [0.0, 1.0] if real else [0, 1]
    called = wj.udf(function, A["x"], B["x"])
    compare = COMPARE[operator]
    condition = compare(limit, called) if mirrored else compare(called, limit)
    found = wj.join(A, B, on=condition).indices(tables(x, y))
    owed = pairs(
        x, y, lambda p, q: compare(limit, value(p, q)) if mirrored else compare(value(p, q), limit)
    )
    assert Counter(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == owed


COLUMNS = {
    "int64": [0, 3, 2**53 + 1, MOST],
    "uint64": [0, 3, 2**63, 2**64 - 1],
    "float64": [0.0, 2.5, 2.0**53, 2.0**63, math.inf, -math.inf],
    "int8": [0, 3, -5],
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("operator", COMPARE)
@pytest.mark.parametrize("real", [True, False])
def test_a_value_and_a_column_are_compared_exactly(operator: str, kind: str, real: bool) -> None:
    x: list[Any] = [0.0, 2.5, 2.0**53] if real else [0, 3, 2**53, 2**53 + 1, MOST]
    y: list[Any] = [0.0] if real else [0]
    limits = COLUMNS[kind]
    function, value = (gap, lambda p: abs(p - 0.0)) if real else (total, lambda p: p)
    rows = tables(x, y * len(limits))
    rows["b"] = rows["b"].append_column("limit", pa.array(limits, kind))
    condition = COMPARE[operator](wj.udf(function, A["x"], B["x"]), B["limit"])
    found = wj.join(A, B, on=condition).indices(rows)
    owed = pairs(x, limits, lambda p, q: COMPARE[operator](value(p), q))
    assert Counter(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == owed


def test_comparisons_go_through_the_compiled_loop() -> None:
    """But for those that need exact numbers of two domains."""
    schemas = {name: table.schema for name, table in tables([1], [1]).items()}
    called = wj.udf(total, A["x"], B["x"])
    for condition, expected in (
        (called <= 3, Function),
        (called == A["x"], Function),
        (called < A["x"] / 2, Function),
        (called <= 2.5, Opaque),
        (called != A["x"] / 2, Opaque),
        (called < wj.udf(total, B["x"], A["x"]), Opaque),
        (abs(called) < 3, Opaque),
    ):
        (predicate,) = wj.join(A, B, on=condition).bind(schemas).spec.predicates
        assert type(predicate) is expected, condition


@pytest.mark.parametrize("mode", MODES)
def test_none_is_no_value(mode: str) -> None:
    x, y = [0, 1, 2, 3], [0, 2, 9]
    for condition, holds in (
        (wj.udf(maybe, A["x"], B["x"]), lambda p, q: p > 1 and p > q),
        (~wj.udf(maybe, A["x"], B["x"]), lambda p, q: p > 1 and p <= q),
        (wj.udf(maybe_gap, A["x"], B["x"]) != 1, lambda p, q: p - q not in (0, 1)),
        (wj.udf(maybe_gap, A["x"], B["x"]).is_null(), lambda p, q: p == q),
    ):
        found = Counter(MODES[mode](wj.join(A, B, on=condition), tables(x, y)))
        assert found == pairs(x, y, holds), condition


def test_values_are_selected_and_calculated_with() -> None:
    called = wj.udf(total, A["x"], B["x"])
    selected = [called.alias("total"), (called * 0.5).alias("half")]
    selected += [wj.udf(maybe_gap, A["x"], B["x"]).alias("gap")]
    query = wj.join(A, B, on=A["n"] == B["n"], select=selected)
    found = query.run(tables([1, 2], [1, 5]))
    assert found.schema.types == [pa.int64(), pa.float64(), pa.int64()]
    assert found.to_pylist() == [
        {"total": 2, "half": 1.0, "gap": None},
        {"total": 7, "half": 3.5, "gap": -3},
    ]


def test_functions_that_are_builtin_or_have_defaults() -> None:
    def near(x: float, y: float, reach: float = 0.5) -> bool:
        return abs(x - y) <= reach

    rows = tables([3.0, 1.0], [4.0, 1.25])
    for called, owed in (
        (wj.udf(math.hypot, A["x"], B["x"]) <= 4, [(1, 1), (0, 1)]),
        (wj.udf(max, A["x"], B["x"]) == 4, [(0, 0), (1, 0)]),
        (wj.udf(near, A["x"], B["x"]), [(1, 1)]),
    ):
        found = wj.join(A, B, on=called).indices(rows)
        assert Counter(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == Counter(owed)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "kind"), [(gap, "float"), (total, "integer")])
def test_a_number_is_no_condition(function: Any, kind: str) -> None:
    schemas = {name: t.schema for name, t in tables([1.0 if kind == "float" else 1], [1]).items()}
    name = function.__name__
    message = rf'^`udf\({name}, a\["x"\], b\["x"\]\)` is not a condition: the function returns'
    message += rf" {kind}; return True or False, or compare what it returns, for example with <=$"
    with pytest.raises(wj.SchemaError, match=message):
        wj.join(A, B, on=wj.udf(function, A["x"], B["x"])).bind(schemas)
    one = wj.stream("a", time="ts", window=5, where=lambda a: wj.udf(function, a["x"], a["x"]))
    with pytest.raises(wj.SchemaError, match=message.replace('b\\["x', 'a\\["x')):
        wj.join(one, B, cross=True).bind(schemas)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x, y: (x, y), "UniTuple"),
        (lambda x, y: "near", "unicode"),
        (lambda x, y: None, "nothing"),
    ],
)
def test_what_is_no_value_is_refused(function: Any, what: str) -> None:
    message = (
        rf"`udf\(lambda, .*\)`: this function \(File .*\) returns {what}.*; return True or False"
    )
    query = wj.join(A, B, on=wj.udf(function, A["x"], B["x"]))
    with pytest.raises(wj.QueryError, match=message):
        query.run(tables([1], [1]))


@pytest.mark.parametrize(
    ("function", "count", "message"),
    [
        (gap, 3, "udf: function gap takes 2 arguments, 3 columns were given"),
        (gap, 1, "udf: function gap takes 2 arguments, 1 column was given"),
        (lambda x: x, 2, "udf: function lambda takes 1 argument, 2 columns were given"),
        (lambda x, y=1: x, 3, "udf: function lambda takes 1 to 2 arguments, 3 columns were given"),
        (
            lambda x, y, *z: x,
            1,
            "udf: function lambda takes at least 2 arguments, 1 column was given",
        ),
        (lambda x, *, y: x, 1, "udf: function lambda takes 'y' by name only, 1 column was given"),
        (numba.njit(total), 3, "udf: function total takes 2 arguments, 3 columns were given"),
        (math.cos, 2, "udf: function cos takes 1 argument, 2 columns were given"),
    ],
)
def test_a_wrong_number_of_columns_is_one_line(function: Any, count: int, message: str) -> None:
    with pytest.raises(wj.QueryError) as caught:
        wj.udf(function, *[A["x"]] * count)
    assert str(caught.value) == message
