"""Slots that shed load, each by its own: a session of a slot does it, what others do is refused."""

from __future__ import annotations

from typing import Any

from windjoin.binding import BoundQuery
from windjoin.checking import check
from windjoin.epochs.routing import Units
from windjoin.errors import QueryError
from windjoin.query import Query
from windjoin.shedding import Shedding

TOLD = (
    "fraction", "recall", "recall_low", "recall_high", "missed", "left_out", "load", "dropped",
)  # fmt: skip


def check_shedding(query: Query, bound: BoundQuery, units: Units, shed: Any) -> None:
    """`QueryError` where slots cannot shed as it was asked."""
    if not isinstance(shed, Shedding):
        raise QueryError(
            f"shed={shed!r}: give a windjoin.Shedding, such as wj.Shedding(budget=0.8)"
        )
    if callable(shed.clock):
        raise QueryError('shed=: slots have no clock of yours; give clock="wall" or "event"')
    if not query.sides.plain or query.nearest is not None or query.exclude_self:
        raise QueryError(
            "shed= is not for how=, keep=, exists=, missing=, nearest= and exclude_self= on Spark:"
            " what is not looked at would change what else is told; leave it out"
        )
    if units.once:
        raise QueryError(
            f"shed= with strategy={units.once!r}: partial results travel between slots, and none"
            ' knows what is missed; take "groups", "atr" or "single"'
        )
    shed.settings(bound)
    if shed.utility is not None:
        check(shed.utility, bound.schemas)  # its columns have to travel


def told_of(metrics: dict[str, Any]) -> dict[str, Any]:
    """What a slot tells of the shedding of its session."""
    return {name: metrics["shedding"].get(name, 0) for name in TOLD}
