"""What a function of several streams returns, compared in the loop that calls it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from windjoin.checking import Typed
from windjoin.expressions import MIRRORED, Comparison, Constant
from windjoin.function_nodes import Udf
from windjoin.kernels.spec import MeasureOperator
from windjoin.kinds import INT64_MAX, INT64_MIN
from windjoin.operands import Recipe, bounded, form_of, itself


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """``value <operator>`` a constant, or what a recipe makes, in the domain of the value."""

    value: Typed
    operator: MeasureOperator
    constant: float | None = None
    recipe: Recipe | None = None


def of_several(part: Typed) -> bool:
    """Whether it is a function of more than one stream."""
    return isinstance(part.node, Udf) and len(part.streams) > 1


def compared(typed: Typed) -> ComparedValue | None:
    """A comparison with such a function on one side; None: it has to be evaluated as it stands."""
    value, other = typed.parts
    operator: Any = cast(Comparison, typed.node).operator
    if not of_several(value):
        value, other, operator = other, value, MIRRORED[operator]
    if not of_several(value) or value.kind.family == "bool":
        return None
    if isinstance(other.node, Constant):
        return _with_constant(value, operator, other)
    return _with_column(value, operator, other)


def _with_constant(
    value: Typed, operator: MeasureOperator, constant: Typed
) -> ComparedValue | None:
    """None where the domain of the value lacks the constant."""
    number = constant.value * constant.kind.step if constant.kind.exact else constant.value
    if not math.isfinite(number):
        return None
    if value.kind.family == "integer":
        fits = number == int(number) and INT64_MIN <= number <= INT64_MAX
        return ComparedValue(value, operator, int(number)) if fits else None
    return ComparedValue(value, operator, float(number)) if is_double(number) else None


def is_double(number: Any) -> bool:
    """Whether a number is a double exactly."""
    try:
        return bool(Fraction(float(number)) == number)
    except OverflowError:
        return False


def _with_column(value: Typed, operator: MeasureOperator, column: Typed) -> ComparedValue | None:
    """A column of another domain becomes the bound that decides."""
    if form_of(column.kind) == form_of(value.kind) and column.kind.step == value.kind.step:
        return ComparedValue(value, operator, recipe=itself(column))
    if operator == "==":
        return ComparedValue(value, "==", recipe=bounded(column, value, "exact"))
    if operator == "!=":
        return None
    at_most_or_least: Any = f"{operator[0]}="
    return ComparedValue(value, at_most_or_least, recipe=bounded(column, value, operator))
