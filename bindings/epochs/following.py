"""Owners that follow what slots were measured to do, as the routers of `diffusion` decide.

Groups of keys are handed over by the router of that strategy itself.  Segments of time to come are
shared out by the same weights; those that rows may have been sent for keep their owners.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.load import Host, Usage, Weights
from windjoin.diffusion.segments import StreamProfile
from windjoin.diffusion.shares import Shares
from windjoin.epochs.deciding import Report
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.owning import owners_of
from windjoin.epochs.routing import GROUPS, Routes

TURN = 8  # segments of a turn for each slot: how finely weights are told apart
BY_TIME = Weights(cpu=1.0, memory=0.0, network=0.0)  # a slot is as loaded as it is busy


def follow(
    job: Job, parent: Manifest, report: Report, routes: Routes, slots: int, now: float
) -> tuple[Routes, Any]:
    """The routes of an epoch, by what the slots did in the one before; and what to remember."""
    elapsed = now - parent.decided
    if slots == 1 or elapsed <= 0 or routes.units.kind == "single":
        return routes, parent.state
    busy = {one["slot"]: one["seconds"] / elapsed for one in report.loads if one["slot"] < slots}
    if routes.units.kind == "groups":
        return _groups(job, parent, routes, busy, slots, now)
    shares = _shares(parent.state, slots, now)
    if shares.follow(busy, now=now):
        newest = [time for time in parent.newest if time is not None]
        told = [time for time in report.entry.high if time is not None]
        if newest or told:
            latest = max([*newest, *told])
            frontier = routes.units.between(latest, latest)[1] + 1
            turn = in_turns([shares.weight(slot) for slot in range(slots)])
            routes = Routes(routes.units, routes.owners.from_unit(frontier, turn))
    return routes, shares.state()


def _groups(
    job: Job, parent: Manifest, routes: Routes, busy: dict[int, float], slots: int, now: float
) -> tuple[Routes, Any]:
    names = job.plan.query.names
    profiles = [StreamProfile(n, window=max(w, 1)) for n, w in zip(names, job.windows, strict=True)]
    hosts = [Host(slot) for slot in range(slots)]
    router = Groups(profiles, hosts, segment_length=1, weights=BY_TIME, group_count=GROUPS)
    router.owner = routes.owners.of(np.arange(GROUPS)).tolist()
    router.shares = _shares(parent.state, slots, now)
    router.report({slot: Usage(cpu=load) for slot, load in busy.items()}, now=now)
    before = list(router.owner)
    router.advance(parent.epoch)
    if router.owner != before:
        routes = Routes(routes.units, owners_of(router.owner))
    return routes, router.shares.state()


def _shares(state: Any, slots: int, now: float) -> Shares:
    """As they were, for the slots that there are now."""
    shares = Shares(dict.fromkeys(range(slots), 1.0))
    if state is not None:
        kept = [one for one in state if one[0] < slots]
        known = {one[0] for one in kept}
        fresh = [one for one in shares.state() if one[0] not in known]
        shares.restore(sorted([*kept, *fresh], key=lambda one: one[0]), now=now)
    return shares


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
