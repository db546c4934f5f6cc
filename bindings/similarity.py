"""What users write to compare sets, weighted sets, vectors and images.

Every function makes a measure of two columns; compare it with a number to get a condition, or
select it under a name.  ``docs/similarity.md`` has the exact definitions.
"""

from __future__ import annotations

from typing import Literal

from windjoin.errors import QueryError
from windjoin.expressions import Column, Expression
from windjoin.function_nodes import PairFunction, Parallel

Weights = Expression | tuple[Expression, Expression]


def overlap(left: Expression, right: Expression) -> PairFunction:
    """How many items two sets have in common.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.overlap(a["tags"], b["tags"]) >= 3
    overlap(a["tags"], b["tags"]) >= 3
    """
    return measure("overlap", left, right)


def jaccard(left: Expression, right: Expression) -> PairFunction:
    """Common items of two sets over the items of both together.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.jaccard(a["tags"], b["tags"]) >= 0.5
    jaccard(a["tags"], b["tags"]) >= 0.5
    """
    return measure("jaccard", left, right)


def containment(left: Expression, right: Expression) -> PairFunction:
    """The share of the left set's items that the right set has too.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.containment(a["tags"], b["tags"]) >= 0.9
    containment(a["tags"], b["tags"]) >= 0.9
    """
    return measure("containment", left, right)


def cosine_sets(left: Expression, right: Expression) -> PairFunction:
    """Common items of two sets over the root of the product of their sizes.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.cosine_sets(a["tags"], b["tags"]) > 0.7
    cosine_sets(a["tags"], b["tags"]) > 0.7
    """
    return measure("cosine_sets", left, right)


def inner_product(left: Weights, right: Weights) -> PairFunction:
    """The sum of products of the weights of common items.

    A weighted set is a map from items to numbers, a list of (item, weight) structs, or a pair of
    list columns of one stream.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.inner_product((a["words"], a["counts"]), b["weights"]) > 0.5
    inner_product((a["words"], a["counts"]), b["weights"]) > 0.5
    """
    return measure("inner_product", left, right)


def cosine(left: Weights, right: Weights) -> PairFunction:
    """The cosine of the angle between two vectors, or between two weighted sets.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.cosine(a["embedding"], b["embedding"]) >= 0.8
    cosine(a["embedding"], b["embedding"]) >= 0.8
    """
    return measure("cosine", left, right)


def l2(left: Expression, right: Expression) -> PairFunction:
    """The Euclidean distance of two vectors or byte arrays of one length.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.l2(a["v"], b["v"]) <= 0.3
    l2(a["v"], b["v"]) <= 0.3
    """
    return measure("l2", left, right)


def l1(left: Expression, right: Expression) -> PairFunction:
    """The sum of absolute differences of two vectors or byte arrays of one length.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.l1(a["v"], b["v"]) < 2
    l1(a["v"], b["v"]) < 2
    """
    return measure("l1", left, right)


def linf(left: Expression, right: Expression) -> PairFunction:
    """The greatest absolute difference of two vectors of one length.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.linf(a["v"], b["v"]) <= 0.1
    linf(a["v"], b["v"]) <= 0.1
    """
    return measure("linf", left, right)


def dot(left: Expression, right: Expression) -> PairFunction:
    """The sum of products of two vectors of one length.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.dot(a["v"], b["v"]) >= 1
    dot(a["v"], b["v"]) >= 1
    """
    return measure("dot", left, right)


def mean_abs_diff(left: Expression, right: Expression) -> PairFunction:
    """The mean absolute difference of two images or other byte arrays of one length.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.mean_abs_diff(a["pixels"], b["pixels"]) <= 12.5
    mean_abs_diff(a["pixels"], b["pixels"]) <= 12.5
    """
    return measure("mean_abs_diff", left, right)


def hamming(
    left: Expression, right: Expression, unit: Literal["bytes", "bits"] = "bytes"
) -> PairFunction:
    """How many bytes (or bits) of two byte arrays of one length differ.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    >>> wj.hamming(a["hash"], b["hash"], unit="bits") <= 4
    hamming_bits(a["hash"], b["hash"]) <= 4
    """
    if unit not in ("bytes", "bits"):
        raise QueryError(f'hamming(unit={unit!r}): the unit is "bytes" or "bits"')
    return measure("hamming" if unit == "bytes" else "hamming_bits", left, right)


def measure(name: str, left: object, right: object) -> PairFunction:
    """The measure that is registered under a name."""
    return PairFunction(name, _operand(name, left), _operand(name, right))


def _operand(name: str, given: object) -> Expression:
    match given:
        case Column():
            return given
        case (Column() as items, Column() as weights) if name in ("inner_product", "cosine"):
            if items.stream == weights.stream:
                return Parallel(items, weights)
            raise QueryError(
                f"{name}: items `{items!r}` and weights `{weights!r}` must be of one stream"
            )
    raise QueryError(
        f"{name} got {given!r} ({type(given).__name__}) where a column is expected, such as"
        ' calls["tags"]'
    )
