"""How much can be done: the fraction of all work, adapted to what the streams bring.

Work is counted in units of the budget: nanoseconds, or comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass

SLOTS = 20  # in which a period is looked at
MOST_DEBT = 1.0  # periods' worth that later ones make up for,
MOST_SAVED = 0.1  # or are given
HASTE = 0.3  # weight of the last slot among those before
EARLY = 0.5  # share of a period's allowance that may be spent before haste is an overload,
LATE = 0.9  # and that may be spent at any pace
BUSY_SLOTS = 3  # in a row


@dataclass(slots=True)
class Rate:
    """The fraction r of the work that is done, once per period (algorithm 1).

    >>> rate = Rate(boost=1.2)
    >>> rate.adapt(available=50.0, needed=100.0), rate.adapt(available=50.0, needed=40.0)
    (0.5, 0.6)
    """

    boost: float = 1.2
    fraction: float = 1.0

    def adapt(self, available: float, needed: float) -> float:
        """The next fraction; ``needed``: what all work of the period would have taken.

        That is ``r *= beta`` with ``beta = available / (r * needed)`` below 1, and else not more
        than ``boost`` times r.
        """
        affordable = max(available, 0.0) / needed if needed > 0 else 1.0
        self.fraction = min(1.0, self.boost * self.fraction, affordable)
        if affordable > 0:
            self.fraction = max(self.fraction, LEAST_FRACTION)
        return self.fraction


LEAST_FRACTION = 1e-6  # so that it can be raised again


class PeriodBudget:
    """What may be spent until the end of a period, and the fraction that keeps to it.

    A fraction that is adapted once per period comes too late for a burst, and misses the budget by
    what it errs.  So every slot looks at what is left, and says by which fraction that lasts.
    """

    def __init__(self, per_period: float) -> None:
        self.per_period = per_period
        self.left = per_period
        self.need = 0.0  # of a slot, for all work
        self.fixed = 0.0  # of a slot, what cannot be shed
        self._busy = 0  # slots that needed more than their part
        self._slots = 0

    @property
    def spent(self) -> float:
        """Of this period's allowance."""
        return self.per_period - self.left

    def spend(self, units: float) -> None:
        """What has been spent since it was told last."""
        self.left -= units

    def observe(self, need: float, fixed: float, slots: int) -> None:
        """What all work of slots that are over would have taken, and what cannot be shed of it."""
        weight = 1 - (1 - HASTE) ** slots if self._slots else 1.0
        self._slots += slots
        self.need += weight * (need / slots - self.need)
        self.fixed += weight * (fixed / slots - self.fixed)
        self._busy = self._busy + slots if need / slots > self.per_period / SLOTS else 0

    def renew(self, periods: int = 1) -> None:
        """A period is over: what is left, or was taken too much, counts for the next."""
        for _ in range(min(periods, 100)):
            carried = min(max(self.left, -MOST_DEBT * self.per_period),
                          MOST_SAVED * self.per_period)  # fmt: skip
            self.left = self.per_period + carried

    @property
    def steady(self) -> float:
        """The fraction that every slot could do of its own part, without what others left."""
        need, part = self.need - self.fixed, self.per_period / SLOTS - self.fixed
        return 1.0 if need <= 0 else min(max(part, 0.0) / need, 1.0)

    def lasting(self, slots: float) -> float:
        """The fraction by which what is left lasts for so many slots, if the need stays."""
        if self.left <= 0:
            return 0.0
        slots = max(slots, 1.0)
        need, left = slots * (self.need - self.fixed), self.left - slots * self.fixed
        return 1.0 if need <= 0 else max(left, 0.0) / need

    def overload(self, slots: float) -> bool:
        """Whether it will not last, in a period that began with everything done."""
        if self.lasting(slots) >= 1:
            return False
        early = self.spent > EARLY * self.per_period and self._busy >= BUSY_SLOTS
        return early or self.spent > LATE * self.per_period
