"""Similarity of whole rows: what all its indexes and its filter share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windjoin.kernels.side import Side
from windjoin.kernels.spec import Similarity, Wide
from windjoin.pyx.measures import MeasureFilter

MeasureOf = tuple[str, bool, bool, str, float]  # name, of doubles, turned, operation, threshold


def wide_sides(predicate: Similarity, target: int) -> tuple[Wide, Wide]:
    """(bound column, column of the target)."""
    if predicate.right.stream == target:
        return predicate.left, predicate.right
    return predicate.right, predicate.left


def measure_of(predicate: Similarity, target: int, doubles: bool) -> MeasureOf:
    """What `set_measure` wants, for bound rows that ask about rows of ``target``."""
    turned = predicate.left.stream == target
    return predicate.measure, doubles, turned, predicate.operator, predicate.threshold


def as_measure_filter(
    predicate: Similarity, target: int, sides: Sequence[Side]
) -> tuple[str, int, MeasureFilter]:
    """What `Pipeline.add_hop` wants of a similarity that no index decides."""
    return ("pairs", wide_sides(predicate, target)[0].stream, MeasureFilter(*asked(predicate, target, sides)))


def asked(predicate: Similarity, target: int, sides: Sequence[Side]) -> tuple[Any, Any, Any]:
    """The measure, and the views of the rows that ask and of those asked about."""
    bound, own = wide_sides(predicate, target)
    doubles = sides[own.stream].spec.wides[own.column].form == "float64"
    return (
        measure_of(predicate, target, doubles),
        sides[bound.stream].wide_view(bound.column),
        sides[own.stream].wide_view(own.column),
    )
