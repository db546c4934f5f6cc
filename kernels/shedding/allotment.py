"""What is worth doing: an amount of work is allotted to basic windows, the worthiest first.

The worth of a basic window is what its results are worth per unit of work that they take: of the
comparisons in it, and, where other hops follow, of what these do with the rows that it lets
through.  What a hop lets through depends on what the others leave out; so worth is reckoned twice,
the second time with the choice of the first.

If asking costs something however little is asked for, the first basic windows of a stream are worth
what they are together, that included: a row asks for all of them or not at all.  The last basic
window is asked in part, or by some rows of its stream, so that all of the work is given out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from windjoin.kernels.shedding.evenly import evenly
from windjoin.kernels.shedding.learned import Direction
from windjoin.kernels.spec import F64
from windjoin.pyx.live import allotment

Policy = Literal["selective", "partial"]
Scope = Literal["all", "each", "whole"]  # over what the worth of basic windows is compared


@dataclass(slots=True)
class Share:
    """Of one starting stream: which rows ask, and for how much of each basic window.

    worth: of each basic window per unit of work, by hop; fraction: of the stream's work
    """

    asks: float
    windows: list[F64]
    worth: list[F64]
    fraction: float = 1.0


def allot(
    directions: Sequence[Direction],
    fraction: float,
    policy: Policy = "selective",
    scope: Scope = "all",
) -> list[Share]:
    """Shares of all basic windows that take the fraction of what all of them take."""
    every = list(directions)
    whole = allotment.totals(every)
    if fraction >= 1 or sum(whole) <= 0:
        return [_everything(direction) for direction in directions]
    if policy == "selective" and scope == "each" and any(len(d.hops) > 1 for d in every):
        return [Share(*one) for one in evenly(every, fraction * sum(whole))]
    if policy == "partial" or scope == "each":
        return [
            _together([direction], fraction * work, policy)[0]
            for direction, work in zip(directions, whole, strict=True)
        ]
    if scope == "whole":
        return _better_first(directions, whole, fraction)
    return _together(every, fraction * sum(whole), policy)


def _better_first(
    directions: Sequence[Direction], whole: Sequence[float], fraction: float
) -> list[Share]:
    """Algorithm 4: all that there is goes to the starting streams whose windows are worth most."""
    left = fraction * sum(whole)
    worth = [
        -float(d.hops[0].found.sum()) / max(work, 1e-300)
        for d, work in zip(directions, whole, strict=True)
    ]
    shares: dict[int, Share] = {}
    for number in sorted(range(len(directions)), key=worth.__getitem__):
        given = min(left, whole[number])
        left -= given
        shares[number] = _together([directions[number]], given, "selective")[0]
    return [shares[number] for number in range(len(directions))]


def _together(directions: list[Direction], work: float, policy: Policy) -> list[Share]:
    """Basic windows of all directions for so much work, however it is divided among them."""
    found = allotment.allot_together(directions, work, policy == "partial")
    return [Share(*one) for one in found]


def _everything(direction: Direction) -> Share:
    ones = [np.ones(hop.windows.count) for hop in direction.hops]
    return Share(1.0, ones, [np.zeros(hop.windows.count) for hop in direction.hops])
