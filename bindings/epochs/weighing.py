"""Segments of time to come, shared out among slots by weights that follow their loads.

Segments that rows may have been sent for keep their owners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windjoin.diffusion.shares import Shares
from windjoin.epochs.deciding import EpochReport
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.routing import Routes

TURN = 8  # segments of a turn for each slot: how finely weights are told apart
NEW = 0.2  # how much of what is remembered an epoch replaces


@dataclass(frozen=True, slots=True)
class Loads:
    """What slots were measured to do."""

    slots: int
    busy: Mapping[int, float]  # of the time between two epochs, by slot
    now: float


def shared_out(
    parent: Manifest, report: EpochReport, routes: Routes, shares: Shares, slots: int
) -> Routes:
    """The routes with other owners of the segments that no row has been sent for."""
    newest = [time for time in parent.newest if time is not None]
    told = [time for time in report.entry.high if time is not None]
    if not newest and not told:
        return routes
    latest = max([*newest, *told])
    frontier = routes.units.between(latest, latest)[1] + 1
    return Routes(routes.units, routes.owners.from_unit(frontier, turn_of(shares, slots)))


def rates_of(before: Sequence[float] | None, report: EpochReport, streams: int) -> list[float]:
    """Rows of an epoch, by stream, as they are on average."""
    told = {count["stream"]: count["rows"] for count in report.counts}
    now = [float(told.get(stream, 0)) for stream in range(streams)]
    if before is None:
        return now
    return [old + NEW * (new - old) for old, new in zip(before, now, strict=True)]


def turn_of(shares: Shares, slots: int) -> tuple[int, ...]:
    """The slots in a turn, by their weights."""
    return in_turns([shares.weight(slot) for slot in range(slots)])


def shares_of(state: Any, slots: int, now: float) -> Shares:
    """As they were, for the slots that there are now.

    state: what was remembered, perhaps by a run with another strategy

    >>> shares_of(remembered(shares_of(None, 2, 0.0), rows=[1.0]), 3, 0.0).weight(2)
    1.0
    """
    shares = Shares(dict.fromkeys(range(slots), 1.0))
    if isinstance(state, dict):
        kept = [one for one in state["shares"] if one[0] < slots]
        rests = [one for one in state.get("rests", ()) if one[0] < slots]
        known = {one[0] for one in kept}
        fresh = [one for one in shares.state() if one[0] not in known]
        shares.restore(sorted([*kept, *fresh], key=lambda one: one[0]), now=now, rests=rests)
    return shares


def remembered(shares: Shares, **more: Any) -> dict[str, Any]:
    """What manifests keep of weights, and of whatever else a strategy follows."""
    return {"shares": shares.state(), "rests": shares.rests(), **more}


def in_turns(weights: list[float]) -> tuple[int, ...]:
    """Slots in a turn, each as often as its weight says and evenly apart.

    >>> in_turns([1.0, 1.0]), in_turns([3.0, 1.0]).count(0)
    ((0, 1), 12)
    """
    if len(set(weights)) == 1:
        return tuple(range(len(weights)))
    total = sum(weights)
    length = TURN * len(weights)
    turn = []
    given = [0.0] * len(weights)
    for _ in range(length):
        given = [had + weight / total for had, weight in zip(given, weights, strict=True)]
        following = max(range(len(weights)), key=lambda slot: (given[slot], -slot))
        given[following] -= 1.0
        turn.append(following)
    return tuple(turn)
