"""What the measures mean, as plain loops over the rows as users write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def measure(name: str, left: Any, right: Any) -> Any:
    """A measure of two rows; None where it has no value.

    >>> measure("overlap", [1, 2, 2], [2, 3]), measure("l2", [0.0, 3.0], [4.0, 0.0])
    (1, 5.0)
    """
    if left is None or right is None:
        return None
    if name in SETS:
        return SETS[name](_members(left), _members(right))
    if name == "inner_product" or (name == "cosine" and (_weighted(left) or _weighted(right))):
        return _of_weights(name, left, right)
    a, b = list(left), list(right)  # of bytes, their numbers
    if len(a) != len(b) or any(x is None or x != x for x in (*a, *b)):
        return None
    found = PAIRS[name](a, b)
    return None if found is None or found != found else found


def _members(row: Any) -> set[Any]:
    return {item for item in row if item is not None}


def _weighted(row: Any) -> bool:
    return any(isinstance(item, tuple) for item in row)


# -- sets -----------------------------------------------------------------------------------


def _jaccard(a: set[Any], b: set[Any]) -> float | None:
    return len(a & b) / len(a | b) if a | b else None


def _containment(a: set[Any], b: set[Any]) -> float | None:
    return len(a & b) / len(a) if a else None


def _cosine_sets(a: set[Any], b: set[Any]) -> float | None:
    product = len(a) * len(b)
    return len(a & b) / math.sqrt(product) if product else None


SETS: dict[str, Callable[[Any, Any], Any]] = {
    "overlap": lambda a, b: len(a & b),
    "jaccard": _jaccard,
    "containment": _containment,
    "cosine_sets": _cosine_sets,
}


# -- weighted sets --------------------------------------------------------------------------


def _of_weights(name: str, left: Any, right: Any) -> float | None:
    if any(i is not None and w is None for i, w in (*left, *right)):
        return None
    a, b = _weights(left), _weights(right)
    total = 0.0
    for item, weight in a.items():
        if item in b:
            total += weight * b[item]
    if name == "inner_product":
        return None if total != total else total
    return _ratio(total, _norm(a.values()) * _norm(b.values()))


def _weights(row: Any) -> dict[Any, float]:
    """Items in order of their first appearance; weights of one item are added up."""
    summed: dict[Any, float] = {}
    for item, weight in row:
        if item is not None:
            summed[item] = summed[item] + float(weight) if item in summed else float(weight)
    return summed


# -- vectors and bytes ----------------------------------------------------------------------


def _norm(values: Any) -> float:
    total = 0.0
    for number in values:
        total += number * number
    return math.sqrt(total)


def _ratio(a: float, b: float) -> float | None:
    found = a / b if b else math.nan
    return None if found != found else found


def _dot(a: Any, b: Any) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def _l1(a: Any, b: Any) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += abs(x - y)
    return total


def _l2(a: Any, b: Any) -> float:
    return _norm(x - y for x, y in zip(a, b, strict=True))


def _linf(a: Any, b: Any) -> float:
    apart = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return math.nan if any(one != one for one in apart) else max(apart, default=0.0)


def _mean_abs_diff(a: Any, b: Any) -> float | None:
    return sum(abs(x - y) for x, y in zip(a, b, strict=True)) / len(a) if a else None


PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "dot": _dot,
    "l1": _l1,
    "l2": _l2,
    "linf": _linf,
    "cosine": lambda a, b: _ratio(_dot(a, b), _norm(a) * _norm(b)),
    "mean_abs_diff": _mean_abs_diff,
    "hamming": lambda a, b: sum(x != y for x, y in zip(a, b, strict=True)),
    "hamming_bits": lambda a, b: sum((x ^ y).bit_count() for x, y in zip(a, b, strict=True)),
}
