"""The one evaluator of expressions: typed trees over Arrow columns, whole columns at a time.

Integers are mathematical integers, floats are IEEE doubles, logic has three values and NaN is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from windjoin import exact
from windjoin.checking import Typed
from windjoin.columns import Values, load
from windjoin.expressions import (
    MIRRORED,
    Alias,
    Between,
    Binary,
    Column,
    Comparison,
    Constant,
    Expression,
    Unary,
)
from windjoin.function_nodes import PairFunction, Udf
from windjoin.kernels.spec import Call
from windjoin.kinds import BOOL, FLOAT, NULL, Kind
from windjoin.methods import Coalesce, Extreme, Method

Bools = NDArray[np.bool_]
Fetch = Callable[[Column], Any]  # the Arrow array of a column, aligned with the others
Known = Mapping[tuple[Any, ...], Values]
NOTHING_KNOWN: Known = {}


def evaluate(typed: Typed, fetch: Fetch, known: Known = NOTHING_KNOWN) -> Values:
    """The value of ``typed`` for every row of the columns that ``fetch`` gives.

    ``known``: measures whose values are there already, by the keys of their nodes
    """
    node = typed.node
    if isinstance(node, Column):
        return load(fetch(node))
    if isinstance(node, Constant):
        return _constant(typed)
    if isinstance(node, PairFunction):
        from windjoin.pairs import definition

        values = known.get(node.key)
        return definition(node).evaluate(node, fetch) if values is None else values
    parts = [evaluate(part, fetch, known) for part in typed.parts]
    if isinstance(node, Alias):
        return parts[0]
    if typed.kind.family == "null":
        return _nothing(NULL, parts)
    return _with_raised(node, _RULES[type(node)](typed, parts), parts)


def _with_raised(node: Expression, values: Values, parts: list[Values]) -> Values:
    """Where a part raised there is no value, unless logic needs none: true | x, false & x."""
    raised = values.raised
    for part in parts:
        if part.raised is not None:
            raised = part.raised if raised is None else raised | part.raised
    if raised is not None and isinstance(node, Binary) and node.operator in ("&", "|"):
        raised = raised & ~_known(values)
    values.raised = raised
    return values


def holds(typed: Typed, fetch: Fetch) -> tuple[Bools, Bools | None]:
    """Where the condition ``typed`` is true, neither false nor null; where a function raised."""
    values = evaluate(typed, fetch)
    if values.kind.family == "null":
        return np.zeros(len(values.data), np.bool_), None
    truth = np.asarray(values.data, np.bool_)
    if values.valid is not None:
        truth = truth & values.valid
    return truth, values.raised


def raising_call(typed: Typed, fetch: Fetch) -> Call:
    """The call that raises, for the one row that ``fetch`` gives of each column.

    Or the first there is, of a function that says something else each time.
    """
    calling = [part for part in typed.parts if part.node.calls]
    for part in calling:
        raised = evaluate(part, fetch).raised
        if raised is not None and raised.any():
            return raising_call(part, fetch)
    if not isinstance(typed.node, Udf):
        return raising_call(calling[0], fetch)
    arguments = [evaluate(part, fetch).data[0].item() for part in typed.parts]
    numbers = (int(a) if isinstance(a, bool) else a for a in arguments)
    return Call(typed.node.function, tuple(numbers), repr(typed.node))


def _constant(typed: Typed) -> Values:
    kind = typed.kind
    if kind.exact:
        return Values(kind, exact.constant(typed.value))
    if kind.family == "text":
        return Values(kind, pa.scalar(typed.value, pa.large_string()))
    if kind.family == "binary":
        return Values(kind, pa.scalar(typed.value, pa.large_binary()))
    return Values(kind, np.array(typed.value))


def _nothing(kind: Kind, parts: list[Values]) -> Values:
    """Null for every row, as long as the longest of ``parts``."""
    shape = np.broadcast_shapes(*(shape_of(part) for part in parts))
    return Values(kind, np.zeros(shape, np.bool_), np.zeros(shape, np.bool_))


def shape_of(values: Values) -> tuple[int, ...]:
    """The shape of an array of these values; () of a constant."""
    if isinstance(values.data, pa.Scalar):
        return ()
    return values.data.shape if isinstance(values.data, np.ndarray) else (len(values.data),)


def both(left: Bools | None, right: Bools | None) -> Bools | None:
    """Where both are valid; None stands for everywhere."""
    if left is None:
        return right
    return left if right is None else left & right


# -- numbers --------------------------------------------------------------------------------


def counted_in(step: Fraction, values: Values) -> Any:
    """Mantissas of ``values`` counted in ``step``, which is as fine as their own or finer."""
    ratio = int(values.kind.step / step)
    return values.data if ratio == 1 else exact.multiply(values.data, exact.constant(ratio))


def doubles(values: Values) -> Any:
    """Values as doubles: the nearest one to each integer or decimal."""
    if not values.kind.exact:
        return values.data
    return exact.quotient(*fractions(values))


def fractions(values: Values) -> tuple[Any, int]:
    """Integers and the divisor that makes values of them."""
    step = min(values.kind.step, Fraction(1))
    return counted_in(step, values), step.denominator


def _arithmetic(typed: Typed, parts: list[Values]) -> Values:
    left, right = parts
    assert isinstance(typed.node, Binary)
    operator = typed.node.operator
    valid = both(left.valid, right.valid)
    if typed.kind.family == "float":
        return _float_arithmetic(operator, left, right, valid)
    if operator == "*":
        return Values(typed.kind, exact.multiply(left.data, right.data), valid)
    if left.kind.family == "duration" and right.kind.family == "integer":
        a, b = left.data, right.data  # duration // integer keeps the duration's unit
    else:
        step = min(left.kind.step, right.kind.step)
        a, b = counted_in(step, left), counted_in(step, right)
    if operator in ("+", "-"):
        return Values(typed.kind, (exact.add if operator == "+" else exact.subtract)(a, b), valid)
    zero = np.asarray(b == 0, np.bool_)
    if zero.any():
        b = np.where(zero, b.dtype.type(1) if b.dtype != object else 1, b)
        valid = both(valid, ~(zero | np.zeros(np.shape(a), np.bool_)))
    divide = exact.floor_divide if operator == "//" else exact.modulo
    return Values(typed.kind, divide(a, b), valid)


_FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
}


def _float_arithmetic(operator: str, left: Values, right: Values, valid: Bools | None) -> Values:
    if left.kind.family == "duration":  # the quotient of two durations
        step = min(left.kind.step, right.kind.step)
        a, b = (exact.to_float(counted_in(step, part)) for part in (left, right))
    else:
        a, b = doubles(left), doubles(right)
    with np.errstate(all="ignore"):
        data = np.asarray(_FLOAT[operator](a, b), np.float64)
    not_nan = data == data
    return Values(FLOAT, data, valid if not_nan.all() else both(valid, not_nan))


def compared(operator: Any, left: Values, right: Values) -> Values:
    """Where ``left <operator> right``."""
    families = (left.kind.family, right.kind.family)
    if "null" in families:
        return _nothing(BOOL, [left, right])
    if families[0] in ("text", "binary"):
        return _compared_text(operator, left, right)
    valid = both(left.valid, right.valid)
    if left.kind.exact and right.kind.exact:
        step = min(left.kind.step, right.kind.step)
        data = exact.compare(operator, counted_in(step, left), counted_in(step, right))
    elif families == ("integer", "float"):
        data = exact.compare_with_float(operator, left.data, right.data)
    elif families == ("float", "integer"):
        mirrored = cast(exact.Order, MIRRORED[operator])
        data = exact.compare_with_float(mirrored, right.data, left.data)
    elif families == ("decimal", "float"):
        data = exact.compare_fraction(operator, *fractions(left), right.data)
    elif families == ("float", "decimal"):
        data = exact.compare_fraction(MIRRORED[operator], *fractions(right), left.data)
    else:
        data = np.asarray(exact.COMPARE[operator](left.data, right.data))
    return Values(BOOL, data, valid)


_TEXT = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def _compared_text(operator: str, left: Values, right: Values) -> Values:
    import pyarrow.compute as pc

    answer = getattr(pc, _TEXT[operator])(left.data, right.data)
    if isinstance(answer, pa.Scalar):
        return Values(BOOL, np.array(answer.as_py()))
    return load(answer)


# -- rules ----------------------------------------------------------------------------------


def _comparison(typed: Typed, parts: list[Values]) -> Values:
    assert isinstance(typed.node, Comparison)
    return compared(typed.node.operator, *parts)


def _between(typed: Typed, parts: list[Values]) -> Values:
    assert isinstance(typed.node, Between)
    value, low, high = parts
    closed = typed.node.closed
    above = compared(">=" if closed in ("both", "left") else ">", value, low)
    below = compared("<=" if closed in ("both", "right") else "<", value, high)
    return _and(above, below)


def _binary(typed: Typed, parts: list[Values]) -> Values:
    assert isinstance(typed.node, Binary)
    if typed.node.operator == "&":
        return _and(*parts)
    if typed.node.operator == "|":
        return _not(_and(*(_not(part) for part in parts)))
    return _arithmetic(typed, parts)


def _and(left: Values, right: Values) -> Values:
    """Kleene's and: false if either is false, else null if either is null."""
    data = left.data & right.data
    if left.valid is None and right.valid is None:
        return Values(BOOL, data)
    left_false = _false(left)
    right_false = _false(right)
    known = np.asarray(_known(left) & _known(right)) | left_false | right_false
    return Values(BOOL, data & known & ~left_false & ~right_false, known)


def _known(values: Values) -> Bools:
    return np.ones((), np.bool_) if values.valid is None else values.valid


def _false(values: Values) -> Bools:
    return np.asarray(~values.data & _known(values))


def _not(values: Values) -> Values:
    return Values(BOOL, ~np.asarray(values.data, np.bool_), values.valid)


def _unary(typed: Typed, parts: list[Values]) -> Values:
    assert isinstance(typed.node, Unary)
    (part,) = parts
    operator = typed.node.operator
    if operator == "is_null":
        shape = shape_of(part)
        return Values(BOOL, np.zeros(shape, np.bool_) if part.valid is None else ~part.valid)
    if operator == "~":
        return _not(part)
    if not part.kind.exact:
        return Values(FLOAT, np.abs(part.data) if operator == "abs" else -part.data, part.valid)
    if operator == "abs":
        return Values(typed.kind, exact.absolute(part.data), part.valid)
    return Values(typed.kind, exact.subtract(exact.constant(0), part.data), part.valid)


def _udf(typed: Typed, parts: list[Values]) -> Values:
    from windjoin.functions import vectorized

    if any(part.kind.family == "null" for part in parts):
        return _nothing(typed.kind, parts)
    return vectorized(typed, parts)


def _method(typed: Typed, parts: list[Values]) -> Values:
    from windjoin.method_rules import evaluate_method

    if parts[0].kind.family == "null":
        return _nothing(typed.kind, parts)
    return evaluate_method(typed, parts)


def _extreme(typed: Typed, parts: list[Values]) -> Values:
    from windjoin.method_rules import extreme

    return extreme(typed, parts)


def _coalesce(typed: Typed, parts: list[Values]) -> Values:
    from windjoin.method_rules import coalesced

    return coalesced(typed, parts)


_RULES: dict[type[Any], Callable[[Typed, list[Values]], Values]] = {
    Comparison: _comparison,
    Between: _between,
    Binary: _binary,
    Unary: _unary,
    Udf: _udf,
    Method: _method,
    Coalesce: _coalesce,
    Extreme: _extreme,
}
