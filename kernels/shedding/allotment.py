"""What is worth doing: an amount of work is allotted to basic windows, the worthiest first.

The worth of a basic window is what its results are worth per unit of work that they take: of the
comparisons in it, and, where other hops follow, of what these do with the rows that it lets
through.  What a hop lets through depends on what the others leave out; so worth is reckoned twice,
the second time with the choice of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from windjoin.kernels.shedding.learned import Direction, smoothed
from windjoin.kernels.spec import F64

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


@dataclass(slots=True)
class _Curve:
    """Basic windows of one hop, the worthiest first, with sums over the first of them."""

    order: np.ndarray[tuple[int], np.dtype[np.intp]]
    worth: F64  # in that order, never rising
    work: F64  # of the first 0, 1, ... of them
    on: F64  # partial results that go on
    found: F64
    bundle: int  # so many first ones are taken together
    ask: float  # what asking costs, however few are asked for

    def first(self, worth: float) -> int:
        """How many are worth that much."""
        return len(self.worth) - int(np.searchsorted(self.worth[::-1], worth, "left"))


def allot(
    directions: Sequence[Direction],
    fraction: float,
    policy: Policy = "selective",
    scope: Scope = "all",
) -> list[Share]:
    """Shares of all basic windows that take the fraction of what all of them take."""
    whole = [_total(direction) for direction in directions]
    if fraction >= 1 or sum(whole) <= 0:
        return [_everything(direction) for direction in directions]
    if policy == "partial" or scope == "each":
        return [
            allot_together([direction], fraction * work, policy)[0]
            for direction, work in zip(directions, whole, strict=True)
        ]
    if scope == "whole":
        return _better_first(directions, whole, fraction)
    return allot_together(directions, fraction * sum(whole), policy)


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
        shares[number] = allot_together([directions[number]], given, "selective")[0]
    return [shares[number] for number in range(len(directions))]


def allot_together(
    directions: Sequence[Direction], work: float, policy: Policy = "selective"
) -> list[Share]:
    """Basic windows of all directions for so much work, however it is divided among them."""
    chains = any(len(direction.hops) > 1 for direction in directions)
    chosen: list[list[int]] = []
    curves: list[list[_Curve]] = []
    for _ in range(2 if chains and policy == "selective" else 1):
        curves = [
            _curves(
                direction, policy, chosen[number] if chosen else None,
                curves[number] if chosen else [],
            )
            for number, direction in enumerate(directions)
        ]  # fmt: skip
        levels = np.unique(np.concatenate([c.worth for one in curves for c in one]))[::-1]
        low, high = 0, len(levels)  # the first `low` levels fit, the first `high` do not
        if _work_of(directions, curves, _at(curves, levels, high)) <= work:
            low = high
        while high - low > 1:
            middle = (low + high) // 2
            if _work_of(directions, curves, _at(curves, levels, middle)) <= work:
                low = middle
            else:
                high = middle
        chosen = _at(curves, levels, low)
    shares = _shares(directions, curves, chosen)
    if low < len(levels):
        _take_part(directions, curves, chosen, _at(curves, levels, low + 1), work, shares)
    for share, direction, one in zip(shares, directions, curves, strict=True):
        share.fraction = _fraction(direction, one, share)
    return shares


def _total(direction: Direction) -> float:
    """What all of it takes."""
    asked, work = direction.known, 0.0
    for hop in direction.hops:
        candidates = float(direction.proposed(hop).sum())
        work += asked * (hop.probe + hop.spread) + hop.candidate * candidates
        asked = 0.0 if hop.arrived is None else float(hop.arrived.sum())
    return work


def _everything(direction: Direction) -> Share:
    ones = [np.ones(hop.windows.count) for hop in direction.hops]
    return Share(1.0, ones, [np.zeros(hop.windows.count) for hop in direction.hops])


def _curves(
    direction: Direction, policy: Policy, chosen: list[int] | None, earlier: list[_Curve]
) -> list[_Curve]:
    """By hop; ``chosen``: how many basic windows of the curves before were taken."""
    curves: list[_Curve] = []
    asked = [direction.known]
    asked += [0.0 if hop.arrived is None else float(hop.arrived.sum()) for hop in direction.hops]
    works = [
        hop.candidate * direction.proposed(hop) + hop.spread * asked[h] / hop.windows.count
        for h, hop in enumerate(direction.hops)
    ]
    after, gains = _after(direction, works, asked, earlier, chosen), [1.0] * len(works)
    if chosen is not None:
        kept = [
            max(curve.found[m] / curve.found[-1], 1e-3) if curve.found[-1] > 0 else 1.0
            for curve, m in zip(earlier, chosen, strict=True)
        ]
        gains = [float(np.prod(kept)) / one for one in kept]
    up = 1.0
    for h, hop in enumerate(direction.hops):
        on = np.zeros(hop.windows.count) if hop.arrived is None else hop.arrived
        gain = smoothed(hop.found, hop.proposed, hop.reach)
        curves.append(
            _curve(
                works[h], on, after[h], gain, gains[h], up, policy,
                direction.known * hop.probe if h == 0 else 0.0, hop.windows.first,
            )
        )  # fmt: skip
        if chosen is not None and earlier[h].on[-1] > 0:
            up *= max(earlier[h].on[chosen[h]] / earlier[h].on[-1], 1e-3)
    return curves


def _after(
    direction: Direction,
    works: Sequence[F64],
    asked: Sequence[float],
    earlier: Sequence[_Curve],
    chosen: Sequence[int] | None,
) -> list[float]:
    """What one partial result that a hop lets through makes the later hops do."""
    each = 0.0
    found = [0.0] * len(works)
    for h in range(len(works) - 1, 0, -1):
        work, share = float(works[h].sum()), 1.0
        if chosen is not None:
            work = float(earlier[h].work[chosen[h]])
            share = earlier[h].on[chosen[h]] / max(earlier[h].on[-1], 1e-300)
        on = asked[h + 1] * share
        each = direction.hops[h].probe + (work + on * each) / max(asked[h], 1e-300)
        found[h - 1] = each if asked[h] > 0 else 0.0
    return found


def _curve(
    work: F64, on: F64, after: float, gain: F64, gains: float, up: float, policy: Policy,
    ask: float, newest: int,
) -> _Curve:  # fmt: skip
    count = len(work)
    takes = up * (work + on * after)
    rank = np.abs(np.arange(count) - newest) / count
    if policy == "partial":
        worth = 1.0 - rank
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = np.where(takes > 0, gains * gain / takes, np.inf)
        finite = worth[takes > 0]
        top = float(finite.max()) if len(finite) else 0.0
        worth[takes <= 0] = 2 * top + 1  # they cost nothing
        worth -= 1e-9 * max(top, 1e-9) * rank  # of equals the newest
    order = np.argsort(-worth, kind="stable")
    sums = np.zeros((4, count + 1))
    for line, values in zip(sums, (work, on, gain, takes), strict=True):
        np.cumsum(values[order], out=line[1:])
    curve = _Curve(order, worth[order], sums[0], sums[1], sums[2], 0, ask)
    if ask > 0 and policy == "selective":
        together = gains * sums[2][1:] / (ask + sums[3][1:])
        most = int(np.argmax(together))
        curve.worth[: most + 1] = together[most]
        np.minimum(curve.worth, together[most], out=curve.worth)
        curve.bundle = most + 1
    return curve


def _at(curves: Sequence[Sequence[_Curve]], levels: F64, number: int) -> list[list[int]]:
    """How many basic windows of every hop are worth the first so many levels."""
    if number == 0:
        return [[0] * len(one) for one in curves]
    return [[curve.first(levels[number - 1]) for curve in one] for one in curves]


def _work_of(
    directions: Sequence[Direction],
    curves: Sequence[Sequence[_Curve]],
    chosen: Sequence[Sequence[int]],
) -> float:
    parts = zip(directions, curves, chosen, strict=True)
    return sum(_work(direction, one, counts) for direction, one, counts in parts)


def _work(direction: Direction, curves: Sequence[_Curve], chosen: Sequence[int]) -> float:
    """What these basic windows take; nothing if some hop has none: then its rows do not ask."""
    if not all(chosen):
        return 0.0
    through, asked, work = 1.0, direction.known, 0.0
    for hop, curve, m in zip(direction.hops, curves, chosen, strict=True):
        work += through * (asked * hop.probe + curve.work[m])
        asked = curve.on[-1]
        if asked > 0:
            through *= curve.on[m] / asked
    return float(work)


def _shares(
    directions: Sequence[Direction],
    curves: Sequence[Sequence[_Curve]],
    chosen: Sequence[Sequence[int]],
) -> list[Share]:
    shares = []
    for direction, one, counts in zip(directions, curves, chosen, strict=True):
        windows, worth = [], []
        for hop, curve, m in zip(direction.hops, one, counts, strict=True):
            share, each = np.zeros(hop.windows.count), np.empty(hop.windows.count)
            share[curve.order[:m]] = 1.0
            each[curve.order] = curve.worth
            windows.append(share)
            worth.append(each)
        shares.append(Share(1.0 if all(counts) else 0.0, windows, worth))
    return shares


def _take_part(
    directions: Sequence[Direction],
    curves: Sequence[Sequence[_Curve]],
    chosen: list[list[int]],
    more: list[list[int]],
    work: float,
    shares: list[Share],
) -> None:
    """What is left is for a part of the next basic window, or for some rows of a stream."""
    before, after = (_work_of(directions, curves, counts) for counts in (chosen, more))
    part = (work - before) / max(after - before, 1e-300)
    for number, (had, has) in enumerate(zip(chosen, more, strict=True)):
        begins = not all(had) and all(has)
        for h, (m, n) in enumerate(zip(had, has, strict=True)):
            rows = begins and (len(has) > 1 or n > 1 or curves[number][h].ask > 0)
            shares[number].windows[h][curves[number][h].order[m:n]] = 1.0 if rows else part
        if begins:
            alone = len(has) == 1 and has[0] == 1 and curves[number][0].ask == 0
            shares[number].asks = 1.0 if alone else part


def _fraction(direction: Direction, curves: Sequence[_Curve], share: Share) -> float:
    """Of the work of a direction."""
    whole = _total(direction)
    if whole <= 0:
        return share.asks
    through, asked, work = 1.0, direction.known, 0.0
    for hop, curve, windows in zip(direction.hops, curves, share.windows, strict=True):
        own = windows[curve.order]
        work += through * (asked * hop.probe + float(np.diff(curve.work) @ own))
        asked = float(curve.on[-1])
        if asked > 0:
            through *= float(np.diff(curve.on) @ own) / asked
    return float(share.asks * work / whole)
