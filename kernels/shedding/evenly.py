"""The same fraction everywhere: what one number for all hops of all streams can do.

That is what the published algorithms do for two streams.  For more it is there to compare with:
of each hop's basic windows the worthiest are asked, but whether another hop's are worth more, and
what a hop lets through, is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from windjoin.kernels.shedding.learned import Direction, HopYield, smoothed
from windjoin.kernels.spec import F64, I64

STEPS = 24  # of a bisection


@dataclass(frozen=True, slots=True)
class _Curve:
    """One hop: what its worthiest basic windows take and let through, by their share of it."""

    order: I64
    worth: F64
    reached: F64  # of all candidates, by the first 0, 1, ... of `order`
    works: F64
    on: F64 | None
    asking: float

    @classmethod
    def of(cls, hop: HopYield, asked: float, granted: float) -> _Curve:
        count = hop.windows.count
        candidates = hop.proposed + granted / count
        worth = smoothed(hop.found, hop.proposed, hop.reach, hop.prior) / np.maximum(
            candidates, 1e-300
        )
        order = np.lexsort((np.abs(np.arange(count) - hop.windows.first), -worth))
        work = hop.candidate * candidates + hop.spread * asked / count
        reached = _sums(candidates[order])
        if reached[-1] <= 0:
            reached = np.linspace(0.0, 1.0, count + 1)
        on = None if hop.arrived is None else _sums(hop.arrived[order])
        return cls(order, worth, reached / reached[-1], _sums(work[order]), on, asked * hop.probe)

    def shares(self, fraction: float) -> F64:
        """Of each basic window, the last one of ``order`` that is afforded in part."""
        sizes = np.diff(self.reached)
        parts = (fraction - self.reached[:-1]) / np.maximum(sizes, 1e-300)
        found = np.empty(len(self.order))
        found[self.order] = np.clip(parts, 0.0, 1.0)
        return found


def evenly(
    directions: Sequence[Direction], work: float
) -> list[tuple[float, list[F64], list[F64], float]]:
    """As `allotment.allot_together`: shares of basic windows that take so much work.

    >>> from windjoin.kernels.shedding.learned import AgeWindows
    >>> hop = HopYield(AgeWindows(10, 0, 19))
    >>> hop.found[:], hop.proposed[:] = (0, 3), (4, 4)
    >>> (found,) = evenly([Direction([hop], rows=1.0)], work=6.0)
    >>> found[1][0].round(3).tolist(), round(found[3], 3)
    ([0.5, 1.0], 0.75)
    """
    curves = [_curves(direction) for direction in directions]
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if sum(_work(hops, middle) for hops in curves) <= work:
            low = middle
        else:
            high = middle
    found = []
    for hops in curves:
        whole = _work(hops, 1.0)
        done = _work(hops, low) / whole if whole > 0 else 1.0
        shares = [hop.shares(low) for hop in hops]
        found.append((1.0, shares, [hop.worth for hop in hops], done))
    return found


def _curves(direction: Direction) -> list[_Curve]:
    asked, found = direction.known, []
    for hop in direction.hops:
        found.append(_Curve.of(hop, asked, direction.granted))
        asked = 0.0 if hop.arrived is None else float(hop.arrived.sum())
    return found


def _work(hops: Sequence[_Curve], fraction: float) -> float:
    """What a stream's rows take if that fraction of every hop is done."""
    through, work = 1.0, 0.0
    for hop in hops:
        own = float(np.interp(fraction, hop.reached, hop.works))
        work += through * (hop.asking + own)
        if hop.on is not None and hop.on[-1] > 0:
            through *= float(np.interp(fraction, hop.reached, hop.on)) / float(hop.on[-1])
    return work


def _sums(values: F64) -> F64:
    found: F64 = np.concatenate([[0.0], np.cumsum(values)])
    return found
