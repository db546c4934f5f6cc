"""Mathematical integers in NumPy arrays: int64 or uint64 where they fit, Python integers where not.

Every function looks at the interval its result can lie in before it computes, so nothing wraps; and
integers meet doubles without rounding either of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from windjoin.kinds import INT64_MAX, INT64_MIN, UINT64_MAX

Integers = NDArray[Any]  # int64, uint64 or Python integers
Bools = NDArray[np.bool_]
Order = Literal["<", "<=", ">", ">=", "==", "!="]

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_TWO_63 = float(2**63)
_OVERFLOW = 2**1024 - 2**970  # from here on the nearest double is infinite
_EXACT_DOUBLE = 2**53


def interval(values: Integers) -> tuple[int, int]:
    """Smallest and largest value; (0, 0) of nothing."""
    if values.size == 0:
        return 0, 0
    return int(values.min()), int(values.max())


def constant(value: int) -> Integers:
    """One integer as an array without dimensions."""
    if INT64_MIN <= value <= INT64_MAX:
        return np.array(value, np.int64)
    return np.array(value, np.uint64 if 0 <= value <= UINT64_MAX else object)


def narrowed(values: Integers) -> Integers:
    """The same integers as int64 or uint64 if they fit, else as Python integers."""
    if values.dtype == np.int64:
        return values
    low, high = interval(values)
    if low >= INT64_MIN and high <= INT64_MAX:
        return values.astype(np.int64)
    if values.dtype == object and low >= 0 and high <= UINT64_MAX:
        return values.astype(np.uint64)
    return values


def _combine(
    operation: Callable[[Any, Any], Any], left: Integers, right: Integers, low: int, high: int
) -> Integers:
    """``operation`` in int64 if operands and results fit, else in Python integers."""
    left, right = narrowed(left), narrowed(right)
    small = left.dtype == np.int64 and right.dtype == np.int64
    if small and low >= INT64_MIN and high <= INT64_MAX:
        return np.asarray(operation(left, right))
    return narrowed(np.asarray(operation(left.astype(object), right.astype(object)), object))


def add(left: Integers, right: Integers) -> Integers:
    """``left + right``."""
    (a, b), (c, d) = interval(left), interval(right)
    return _combine(np.add, left, right, a + c, b + d)


def subtract(left: Integers, right: Integers) -> Integers:
    """``left - right``."""
    (a, b), (c, d) = interval(left), interval(right)
    return _combine(np.subtract, left, right, a - d, b - c)


def multiply(left: Integers, right: Integers) -> Integers:
    """``left * right``."""
    (a, b), (c, d) = interval(left), interval(right)
    corners = (a * c, a * d, b * c, b * d)
    return _combine(np.multiply, left, right, min(corners), max(corners))


def floor_divide(left: Integers, right: Integers) -> Integers:
    """``left // right``, rounding down; no divisor may be 0."""
    largest = max(map(abs, interval(left)))  # the quotient by -1 of the smallest int64 is too wide
    return _combine(np.floor_divide, left, right, -largest, largest)


def modulo(left: Integers, right: Integers) -> Integers:
    """``left % right``, with the sign of ``right``; no divisor may be 0."""
    largest = max(map(abs, interval(right)))
    return _combine(np.mod, left, right, -largest, largest)


def absolute(values: Integers) -> Integers:
    """``abs(values)``."""
    if interval(values)[0] >= 0:
        return values
    negated = subtract(constant(0), values)
    if negated.dtype != np.int64:
        values, negated = values.astype(object), negated.astype(object)
    return narrowed(np.asarray(np.maximum(values, negated)))


def to_float(values: Integers) -> NDArray[np.float64]:
    """The nearest doubles; infinite beyond the largest one."""
    return values.astype(np.float64) if values.dtype != object else _wide_quotient(values, 1)


def compare(operator: Order, left: Integers, right: Integers) -> Bools:
    """``left <operator> right`` of integers, whatever their width."""
    return np.asarray(COMPARE[operator](left, right)).astype(np.bool_)


def compare_with_float(operator: Order, integers: Integers, doubles: NDArray[np.float64]) -> Bools:
    """``integers <operator> doubles`` as real numbers; NaN gives anything."""
    integers = narrowed(integers)
    if integers.dtype == object:  # Python compares its integers with its floats exactly
        return np.asarray(COMPARE[operator](integers, doubles.astype(object))).astype(np.bool_)
    low, high = interval(integers)
    if low >= -_EXACT_DOUBLE and high <= _EXACT_DOUBLE:
        return np.asarray(COMPARE[operator](integers.astype(np.float64), doubles))
    unsigned = integers.dtype == np.uint64
    if operator in ("==", "!="):
        found, fits = whole(doubles, unsigned)
        equal = np.asarray((_encoded(integers) == found) & fits)
        return equal if operator == "==" else ~equal
    inclusive, limit, possible = limits(operator, doubles, unsigned)
    return np.asarray(COMPARE[inclusive](_encoded(integers), limit) & possible)


# -- fractions and doubles ------------------------------------------------------------------


def quotient(values: Integers, divisor: int) -> NDArray[np.float64]:
    """The doubles nearest to ``values / divisor``; infinite beyond the largest one."""
    if divisor == 1:
        return to_float(values)
    if _divides_once(values, divisor):
        return values.astype(np.float64) / float(divisor)
    return _wide_quotient(values, divisor)


def _wide_quotient(values: Integers, divisor: int) -> NDArray[np.float64]:
    """By Python's division, which rounds once but refuses what is too large."""
    values, limit = values.astype(object), _OVERFLOW * divisor
    above, below = (values >= limit).astype(np.bool_), (values <= -limit).astype(np.bool_)
    near = np.asarray(np.where(above | below, 0, values) / divisor).astype(np.float64)
    return np.where(above, np.inf, np.where(below, -np.inf, near))


def beyond(values: Integers, divisor: int, rounded: NDArray[np.float64]) -> NDArray[np.int64]:
    """The sign of ``values / divisor - rounded``, where ``rounded`` is their `quotient`."""
    if _divides_once(values, divisor):
        whole = values.astype(np.float64)
        product, error = _two_product(rounded, float(divisor))
        rest = whole - product  # exact: the two are neighbours
        return np.asarray((rest > error).astype(np.int64) - (rest < error))
    finite = np.where(np.isfinite(rounded), rounded, 0.0)
    fraction, exponent = np.frexp(finite)
    mantissas = np.ldexp(fraction, 53).astype(np.int64).astype(object)
    powers = exponent.astype(np.int64) - 53
    left = values.astype(object) << np.maximum(-powers, 0).astype(object)
    right = (mantissas * divisor) << np.maximum(powers, 0).astype(object)
    signs = (left > right).astype(np.int64) - (left < right).astype(np.int64)
    return np.where(np.isfinite(rounded), signs, np.where(rounded > 0, -1, 1))


def _divides_once(values: Integers, divisor: int) -> bool:
    """Whether both are doubles, so that one division rounds once."""
    low, high = interval(values)
    return max(-low, high) <= _EXACT_DOUBLE and divisor <= 10**22


def _two_product(a: Any, b: float) -> tuple[Any, Any]:
    """``a * b`` and its rounding error, exactly (Dekker, Veltkamp)."""
    product = a * b
    split = a * 134_217_729.0
    a_high = split - (split - a)
    b_split = b * 134_217_729.0
    b_high = b_split - (b_split - b)
    a_low, b_low = a - a_high, b - b_high
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def compare_fraction(
    operator: str, values: Integers, divisor: int, doubles: NDArray[np.float64]
) -> Bools:
    """``values / divisor <operator> doubles`` as real numbers; NaN gives anything."""
    near = quotient(values, divisor)
    side = beyond(values, divisor, near)
    level = near == doubles
    less = (near < doubles) | (level & (side < 0))
    equal = level & (side == 0)
    if operator in ("==", "!="):
        return np.asarray(equal if operator == "==" else ~equal)
    if operator in ("<", "<="):
        return np.asarray(less | equal if operator == "<=" else less)
    return np.asarray(~less if operator == ">=" else ~(less | equal))


def double_limits(
    operator: str, values: Integers, divisor: int
) -> tuple[NDArray[np.float64], Bools | None]:
    """For doubles ``x``: ``x <operator> values / divisor`` iff ``x <inclusive> limit``.

    For ``exact``: the values themselves, and which of them are doubles.
    """
    near = quotient(values, divisor)
    side = beyond(values, divisor, near)
    if operator == "exact":
        return near, side == 0
    if operator in ("<", "<="):
        down = side < 0 if operator == "<=" else side <= 0
        return np.where(down, np.nextafter(near, -np.inf), near), None
    up = side > 0 if operator == ">=" else side >= 0
    return np.where(up, np.nextafter(near, np.inf), near), None


# -- int64 and uint64 in one int64 domain ---------------------------------------------------


def flipped(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """uint64 as int64 in the same order: the sign bit is turned over."""
    return (values ^ np.uint64(2**63)).view(np.int64)


def _encoded(values: Integers) -> NDArray[np.int64]:
    return flipped(values) if values.dtype == np.uint64 else values


def whole(values: Any, unsigned: bool, ratio: int = 1) -> tuple[NDArray[np.int64], Bools]:
    """``values / ratio`` where that is an int64 (or uint64, flipped), and where it is.

    ``values`` are doubles (``ratio`` 1) or int64 or uint64.
    """
    down, up = _floor_ceil(values, ratio)
    encoded, below, above = _place(down, 0, unsigned)
    return encoded, ~(below | above) & (down == up)


def limits(
    operator: str, values: Any, unsigned: bool, ratio: int = 1
) -> tuple[Literal["<=", ">="], NDArray[np.int64], Bools]:
    """For integers ``i``: ``i <operator> values / ratio`` iff ``i <inclusive> limit`` and possible.

    Limits are int64, or uint64 flipped; ``possible`` is false where no such integer satisfies it.
    """
    down, up = _floor_ceil(values, ratio)
    if operator in ("<", "<="):
        edge, shift = (up, -1) if operator == "<" else (down, 0)
        encoded, below, above = _place(edge, shift, unsigned)
        return "<=", np.where(above, INT64_MAX, encoded), ~below
    edge, shift = (down, 1) if operator == ">" else (up, 0)
    encoded, below, above = _place(edge, shift, unsigned)
    return ">=", np.where(below, INT64_MIN, encoded), ~above


def _floor_ceil(values: Any, ratio: int) -> tuple[Any, Any]:
    if values.dtype == np.float64:
        return np.floor(values), np.ceil(values)
    if ratio == 1:
        return values, values
    if ratio > INT64_MAX:
        return -(values < 0).astype(np.int64), (values > 0).astype(np.int64)
    divisor = values.dtype.type(ratio)
    down = np.floor_divide(values, divisor)
    return down, down + (down * divisor != values).astype(values.dtype)


def _place(values: Any, shift: int, unsigned: bool) -> tuple[NDArray[np.int64], Bools, Bools]:
    """``values + shift`` in the domain, and which lie below and above it (those become 0)."""
    low, high = (0, UINT64_MAX) if unsigned else (INT64_MIN, INT64_MAX)
    if values.dtype == np.float64:
        below = ~(values >= at_least(low - shift))  # NaN too
        above = values > at_most(high - shift)
        inside = np.where(below | above, 0.0, values)
        upper = inside >= _TWO_63
        bits = np.where(upper, inside - _TWO_63, inside)
        bits = np.where(upper & (bits == _TWO_63), 0.0, bits)  # 2**64 is 0 modulo 2**64 ...
        wrapped = bits.astype(np.int64).view(np.uint64)
        carry = upper & (inside < 2 * _TWO_63)  # ... and then needs no 2**63 back
        wrapped = np.where(carry, wrapped + np.uint64(2**63), wrapped)
    else:
        below, above = values < low - shift, values > high - shift
        wrapped = np.where(below | above, values.dtype.type(0), values).astype(np.uint64)
    wrapped = wrapped + np.uint64(shift % 2**64)
    return (flipped(wrapped) if unsigned else wrapped.view(np.int64)), below, above


# -- one number ----------------------------------------------------------------------------


def at_most(value: Any) -> float:
    """The largest double that is not above ``value`` (an int, a Fraction or a float)."""
    near = _nearest(value)
    return math.nextafter(near, -math.inf) if near > value else near


def at_least(value: Any) -> float:
    """The smallest double that is not below ``value``."""
    near = _nearest(value)
    return math.nextafter(near, math.inf) if near < value else near


def _nearest(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
