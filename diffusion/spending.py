"""What hosts spend on rows, measured from report to report: the costs of a ring's cost model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from windjoin.diffusion.ring_slices import Spent
from windjoin.diffusion.worker import Tally

LEAST_ROWS = 64  # of a report that says anything
OF_LATE = 0.25  # weight of the latest report


class _Totals(NamedTuple):
    joining: float
    aside: float  # seconds at work, joining aside
    taken: int  # rows and partial results


class Spending:
    """Seconds per row and per message, of late."""

    def __init__(self) -> None:
        self._before: dict[int, _Totals] = {}
        self._counted = 0, 0
        self._spent: Spent | None = None

    def measure(self, tallies: Mapping[int, Tally], rows: int, blocks: int) -> Spent | None:
        """What was spent, as so many rows came in so many blocks so far; None: too few of late."""
        fresh_rows, fresh_blocks = rows - self._counted[0], blocks - self._counted[1]
        waits = [tally.least_wait for tally in tallies.values() if tally.least_wait]
        if fresh_rows < LEAST_ROWS or not fresh_blocks or not waits:
            return None
        now = {host: _totals(tally) for host, tally in tallies.items()}
        nothing = _Totals(0.0, 0.0, 0)
        joining, aside, taken = (
            sum(new[at] - self._before.get(host, nothing)[at] for host, new in now.items())
            for at in range(3)
        )
        self._before, self._counted = now, (rows, blocks)
        latest = Spent(
            joining / fresh_rows, aside / max(taken, 1), min(waits), fresh_rows / fresh_blocks
        )
        self._spent = spent_of_late(self._spent, latest)
        return self._spent


def spent_of_late(before: Spent | None, latest: Spent) -> Spent:
    """What was spent, as the latest report changes it.

    >>> spent_of_late(Spent(1.0, 0.0, 0.0, 8.0), Spent(2.0, 0.0, 0.0, 8.0)).joining
    1.25
    """
    mixed = (old + OF_LATE * (new - old) for old, new in zip(before or latest, latest, strict=True))
    return Spent(*mixed)


def _totals(tally: Tally) -> _Totals:
    joining = tally.joining
    return _Totals(joining, max(tally.busy - joining, 0.0), tally.rows_in + tally.partials_in)
