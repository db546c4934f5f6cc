"""Conditions on a difference of two streams as a band: ``low <= left - right <= high``.

``abs(x - y) <= e``, ``x - y > c``, ``c >= -(x - y)`` and their mirrored forms all are one band with
inclusive bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from windjoin import exact
from windjoin.checking import Typed
from windjoin.expressions import MIRRORED, Binary, Comparison, Constant, Unary
from windjoin.kinds import NUMBERS
from windjoin.operands import Recipe, form_of

Bound = int | float
_WIDEST = 2**64  # no difference of int64 goes this far


@dataclass(frozen=True, slots=True)
class Band:
    """Operands and inclusive bounds; without recipes it needs more than the kernels' 64 bits."""

    recipes: tuple[Recipe, Recipe] | None
    low: Bound = -math.inf
    high: Bound = math.inf


NEVER = (math.inf, -math.inf)
ALWAYS = (-math.inf, math.inf)


def band_of(typed: Typed) -> Band | None:
    """The band that a comparison is, if it compares a difference of two streams with a constant."""
    operator = cast(Comparison, typed.node).operator
    measure, limit = typed.parts
    if isinstance(measure.node, Constant):
        measure, limit, operator = limit, measure, cast(Any, MIRRORED[operator])
    if not isinstance(limit.node, Constant) or operator == "!=":
        return None
    absolute = isinstance(measure.node, Unary) and measure.node.operator == "abs"
    difference = _difference(measure.parts[0] if absolute else measure)
    if difference is None:
        return None
    left, right = difference
    recipes = _recipes(left, right)
    if measure.kind.family == "float":
        bounds = _float_bounds(operator, limit)
    else:
        bounds = _integer_bounds(operator, limit, min(left.kind.step, right.kind.step))
    if absolute:
        folded = _folded(operator, *bounds)
        return None if folded is None else Band(recipes, *folded)
    return Band(recipes, *bounds)


def _difference(typed: Typed) -> tuple[Typed, Typed] | None:
    """``x - y`` of one stream each; ``-(x - y)`` is ``y - x``."""
    node = typed.node
    if isinstance(node, Unary) and node.operator == "-":
        inner = _difference(typed.parts[0])
        return None if inner is None else (inner[1], inner[0])
    if not isinstance(node, Binary) or node.operator != "-":
        return None
    left, right = typed.parts
    if len(left.streams) != 1 or len(right.streams) != 1 or left.streams == right.streams:
        return None
    return left, right


def _recipes(left: Typed, right: Typed) -> tuple[Recipe, Recipe] | None:
    if "float" in (left.kind.family, right.kind.family):
        return Recipe(left, "float64"), Recipe(right, "float64")
    forms = {form_of(left.kind), form_of(right.kind)}
    step = min(left.kind.step, right.kind.step)
    if forms == {"flipped"} and left.kind.step == right.kind.step:
        return Recipe(left, "flipped", step), Recipe(right, "flipped", step)
    if forms != {"int64"}:
        return None
    for kind in (left.kind, right.kind):
        # times of another unit are converted and checked row by row; numbers must always fit
        if kind.family in NUMBERS and not kind.counted_in(step).fits_int64:
            return None
    return Recipe(left, "int64", step), Recipe(right, "int64", step)


def _integer_bounds(operator: str, limit: Typed, step: Fraction) -> tuple[Bound, Bound]:
    if limit.kind.family == "float" and math.isinf(limit.value):
        return _float_bounds(operator, limit)
    value = Fraction(limit.value)
    exactly = (value * limit.kind.step if limit.kind.exact else value) / step
    down, up = math.floor(exactly), math.ceil(exactly)
    low: Bound = {">=": up, ">": down + 1, "==": up}.get(operator, -math.inf)
    high: Bound = {"<=": down, "<": up - 1, "==": down}.get(operator, math.inf)
    if low >= _WIDEST or high <= -_WIDEST:
        return NEVER
    return (low if low > -_WIDEST else -math.inf), (high if high < _WIDEST else math.inf)


def _float_bounds(operator: str, limit: Typed) -> tuple[Bound, Bound]:
    value: Any = limit.value * limit.kind.step if limit.kind.exact else limit.value
    below, above = exact.at_most(value), exact.at_least(value)
    if operator == "==":
        return (above, below)
    if operator == "<=":
        return (-math.inf, below)
    if operator == ">=":
        return (above, math.inf)
    if operator == "<":
        inside = below if below < value else math.nextafter(below, -math.inf)
        return (-math.inf, inside) if inside < value else NEVER
    inside = above if above > value else math.nextafter(above, math.inf)
    return (inside, math.inf) if inside > value else NEVER


def _folded(operator: str, low: Bound, high: Bound) -> tuple[Bound, Bound] | None:
    """Bounds of ``x`` from bounds of ``abs(x)``; None where that takes two bands."""
    if operator in ("<", "<="):
        return (-high, high)
    return ALWAYS if operator in (">", ">=") and low <= 0 else None
