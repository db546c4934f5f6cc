"""How long segments are: the length with which most rows were joined, of those that were tried.

The search is that of the routers; what it is told comes from epochs.
"""

from __future__ import annotations

from windjoin.diffusion.segment_length import HillClimber
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.weighing import Loads

BUSY = 0.5  # slots that are idle for longer lose nothing by the length of segments


def searched(
    job: Job, parent: Manifest, climber: HillClimber, rows: float, loads: Loads, lasts: int = 0
) -> bool:
    """Go on with the search after an epoch of so many rows; whether that says anything.

    ``lasts``: for how long rows that were sent by another length are in the way of a judgement.
    """
    most = max(loads.busy.values(), default=0.0)
    times = [time for time in parent.newest if time is not None]
    if job.chosen_segment or most < BUSY or not times:
        return False
    before, border = climber.length, max(times)
    if climber.observe(rows / most, border) != before:
        climber.wait_until(border + lasts)
    return True
