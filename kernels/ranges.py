"""Conditions that put a value of the target between bounds: what sorted indexes serve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windjoin.kernels.access import Situation
from windjoin.kernels.comparison import as_filter, other_side
from windjoin.kernels.side import Side
from windjoin.kernels.spec import Between, Compare

MOST_CONDITIONS = 16  # that one index is asked about

Range = Compare | Between


def ranges_by_column(situation: Situation) -> dict[int, tuple[Range, ...]]:
    """Every condition of the hop that bounds a column of the target, by column."""
    found: dict[int, tuple[Range, ...]] = {}
    for p in situation.predicates:
        if isinstance(p, Between) or (isinstance(p, Compare) and p.operator != "!="):
            column = other_side(p, situation.target)[1].column
            found[column] = (*found.get(column, ()), p)
    return {column: ranges[:MOST_CONDITIONS] for column, ranges in found.items()}


def as_ranges(
    values: Sequence[Sequence[Range]], target: int, sides: Sequence[Side]
) -> list[tuple[int, tuple[Any, ...]]]:
    """What `Pipeline.add_hop` wants of the conditions on each value of an index."""
    return [
        (value, as_filter(p, target, sides)[1:])
        for value, ranges in enumerate(values)
        for p in ranges
    ]
