"""What the work of a hop is counted as: comparisons, or the time they are expected to take."""

from __future__ import annotations

from collections.abc import Sequence

from windjoin.kernels.order import OrderHop
from windjoin.kernels.shedding.learned import AgeWindows, HopYield

PROBE_NS = 40.0
CANDIDATE_NS = 2.0
ALONE_NS = 500.0


def alone_ns(steps: Sequence[OrderHop]) -> float:
    """What it takes to join a row on its own, however little it looks at.

    Other hops and filters make of that what they like: then it is infinite.
    """
    return ALONE_NS if len(steps) == 1 and not steps[0].filters else float("inf")


def hop_of(step: OrderHop, windows: AgeWindows, by_time: bool, last: bool) -> HopYield:
    """A hop of which nothing is known yet.

    By time, asking and looking at a candidate are what the plan expects them to take; only their
    ratio counts, as the time itself is measured.
    """
    if not by_time:
        hop = HopYield(windows)
    else:
        filters = sum(predicate.filter_cost for predicate in step.filters)
        own = CANDIDATE_NS * step.access.candidates
        spread = max(step.access.cost - PROBE_NS - own, 0.0)
        hop = HopYield(windows, PROBE_NS, spread, CANDIDATE_NS + filters)
    if not last:
        hop.arrived = hop.found.copy()
    return hop
