"""What the measures mean, in plain Python loops over the rows as a user wrote them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

Row = tuple[int, Any]  # time and value
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def members(row: Any) -> set[Any]:
    """The items of a row that are there."""
    return {item for item in row if item is not None and item == item}


def overlap(a: Any, b: Any) -> float | None:
    return len(members(a) & members(b))


def jaccard(a: Any, b: Any) -> float | None:
    union = len(members(a) | members(b))
    return len(members(a) & members(b)) / union if union else None


def containment(a: Any, b: Any) -> float | None:
    return len(members(a) & members(b)) / len(members(a)) if members(a) else None


def cosine_sets(a: Any, b: Any) -> float | None:
    product = len(members(a)) * len(members(b))
    return len(members(a) & members(b)) / math.sqrt(product) if product else None


def weights(row: Any) -> dict[Any, float]:
    """Items in order of their first appearance; weights of one item are added up."""
    summed: dict[Any, float] = {}
    for item, weight in row:
        if item is not None:
            summed[item] = summed[item] + weight if item in summed else weight
    return summed


def weighted_bad(row: Any) -> bool:
    return any(i is not None and (w is None or w != w) for i, w in row)


def inner_product(a: Any, b: Any) -> float | None:
    left, right = weights(a), weights(b)
    total = 0.0
    for item, weight in left.items():
        if item in right:
            total += weight * right[item]
    return total


def norm(values: Any) -> float:
    total = 0.0
    for value in values:
        total += value * value
    return math.sqrt(total)


def ratio(a: float, b: float) -> float | None:
    return a / b if b and a == a and b == b else None


def cosine_weights(a: Any, b: Any) -> float | None:
    product = norm(weights(a).values()) * norm(weights(b).values())
    return ratio(inner_product(a, b) or 0.0, product)


def dot(a: Any, b: Any) -> float | None:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


def cosine(a: Any, b: Any) -> float | None:
    return ratio(dot(a, b) or 0.0, norm(a) * norm(b))


def l1(a: Any, b: Any) -> float | None:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += abs(x - y)
    return total


def l2(a: Any, b: Any) -> float | None:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        difference = x - y
        total += difference * difference
    return math.sqrt(total)


def linf(a: Any, b: Any) -> float | None:
    differences = [abs(x - y) for x, y in zip(a, b, strict=True)]
    undefined = any(d != d for d in differences)  # which max() may miss
    return math.nan if undefined else max(differences, default=0.0)


def mean_abs_diff(a: Any, b: Any) -> float | None:
    return sum(abs(x - y) for x, y in zip(a, b, strict=True)) / len(a) if len(a) else None


def hamming(a: Any, b: Any) -> float | None:
    return sum(x != y for x, y in zip(a, b, strict=True))


def hamming_bits(a: Any, b: Any) -> float | None:
    return sum((x ^ y).bit_count() for x, y in zip(a, b, strict=True))


SETS = {f.__name__: f for f in (overlap, jaccard, containment, cosine_sets)}
WEIGHTED = {"inner_product": inner_product, "cosine": cosine_weights}
VECTORS = {f.__name__: f for f in (l2, l1, linf, dot, cosine)}
BYTES = {f.__name__: f for f in (l2, l1, mean_abs_diff, hamming, hamming_bits)}


def measure(family: str, name: str, a: Any, b: Any) -> float | None:
    """The measure of two rows; None if there is none."""
    if a is None or b is None:
        return None
    if family == "sets":
        return SETS[name](a, b)
    if family == "weighted":
        bad = weighted_bad(a) or weighted_bad(b)
        return None if bad else WEIGHTED[name](a, b)
    if any(x is None or x != x for x in (*a, *b)) or len(a) != len(b):
        return None
    value = (VECTORS if family == "vectors" else BYTES)[name](a, b)
    return None if value is not None and value != value else value


def join(
    left: list[Row],
    right: list[Row],
    windows: tuple[int, int],
    holds: Callable[[Any, Any], bool],
) -> list[tuple[int, int]]:
    """Row numbers of every result of two streams, ascending."""
    found = []
    for i, (t, a) in enumerate(left):
        for j, (u, b) in enumerate(right):
            if t - u <= windows[1] and u - t <= windows[0] and holds(a, b):
                found.append((i, j))
    return found


def condition(family: str, name: str, sign: str, limit: float) -> Callable[[Any, Any], bool]:
    """``name(a, b) <sign> limit``; false where there is no value."""

    def holds(a: Any, b: Any) -> bool:
        value = measure(family, name, a, b)
        return value is not None and COMPARE[sign](value, limit)

    return holds
