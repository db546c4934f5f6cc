"""Comparisons of two columns, turned so that the bound side stands on the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windjoin.kernels.side import Side
from windjoin.kernels.spec import Between, Compare, Equal, Key, NotEqual, Operand

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
BEYOND = 1 << 70  # more than two int64 can differ

CompareFilter = tuple[str, str, bool, tuple[int, Any], Any, Any, Any]


def other_side(predicate: Compare | Between, target: int) -> tuple[Operand, Operand]:
    """(bound operand, operand of the target)."""
    if predicate.right.stream == target:
        return predicate.left, predicate.right
    return predicate.right, predicate.left


def as_filter(predicate: Compare | Between, target: int, sides: Sequence[Side]) -> CompareFilter:
    """What `Pipeline.add_hop` wants of a comparison: bound <operator> target."""
    bound, own = other_side(predicate, target)
    turned = predicate.left.stream == target
    real = predicate.dtype == "float64"
    low: float = 0
    high: float = 0
    if isinstance(predicate, Compare):
        operator = MIRRORED[predicate.operator] if turned else str(predicate.operator)
    else:
        operator = "between"
        low, high = predicate.low, predicate.high
        if turned:
            low, high = -high, -low
        if not real:
            low, high = _clamped(low), _clamped(high)
    return (
        "compare",
        operator,
        real,
        (bound.stream, sides[bound.stream].view(bound.column)),
        sides[target].view(own.column),
        low,
        high,
    )


def as_code_filter(
    predicate: Equal | NotEqual, target: int, sides: Sequence[Side]
) -> CompareFilter:
    """The same for an equality of keys that no index decides."""
    bound, own = predicate.left, predicate.right
    if own.stream != target:
        bound, own = own, bound
    return keys_filter(bound, own, predicate.code_operator, sides)


def keys_filter(bound: Key, own: Key, operator: str, sides: Sequence[Side]) -> CompareFilter:
    """Compare the codes of two keys."""
    return (
        "compare",
        operator,
        False,
        (bound.stream, sides[bound.stream].code_view(bound.key)),
        sides[own.stream].code_view(own.key),
        0,
        0,
    )


def rows_differ(bound: int, target: int, sides: Sequence[Side]) -> CompareFilter:
    """A row of a table that is two streams never pairs with itself."""
    from windjoin.kernels.side import ROW_NUMBER

    views = sides[bound].view(ROW_NUMBER), sides[target].view(ROW_NUMBER)
    return ("compare", "!=", False, (bound, views[0]), views[1], 0, 0)


def _clamped(bound: float) -> int:
    if bound == float("inf") or bound > BEYOND:
        return BEYOND
    if bound == float("-inf") or bound < -BEYOND:
        return -BEYOND
    return int(bound)
