"""Owners that follow what slots were measured to do, as the routers of `diffusion` decide.

Groups of keys are handed over by the router of that strategy itself, segments of rows that are
stored once are placed by theirs (`diffusing`).  Of aligned routing segments to come are shared out
by the same weights (`weighing`), another stream may become master, and segments another length
(`aligning`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.load import Host, Usage
from windjoin.diffusion.segments import StreamProfile
from windjoin.epochs.aligning import follow_atr
from windjoin.epochs.deciding import EpochReport
from windjoin.epochs.diffusing import BY_TIME, follow_hops
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.owning import owners_of
from windjoin.epochs.routing import GROUPS, Routes
from windjoin.epochs.weighing import Loads, remembered, shares_of


def follow(
    job: Job, parent: Manifest, report: EpochReport, routes: Routes, slots: int, now: float
) -> tuple[Routes, Any]:
    """The routes of an epoch, by what the slots did in the one before; and what to remember."""
    elapsed = now - parent.decided
    if slots == 1 or elapsed <= 0 or routes.units.kind == "single":
        return routes, parent.state
    busy = {one["slot"]: _own(one) / elapsed for one in report.loads if one["slot"] < slots}
    if routes.units.kind == "groups":
        return _groups(job, parent, routes, busy, slots, now)
    if routes.units.kind == "atr":
        return follow_atr(job, parent, report, routes, Loads(slots, busy, now))
    return follow_hops(job, parent, report, routes, Loads(slots, busy, now))


def _own(load: Mapping[str, Any]) -> float:
    """Seconds of a slot, but for what its worker had missed: to which one it comes is chance."""
    behind, seconds = float(load.get("behind", 0.0)), float(load["seconds"])
    return seconds * (1.0 - behind / max(float(load["cpu"]), behind, 1e-9))


def _groups(
    job: Job, parent: Manifest, routes: Routes, busy: dict[int, float], slots: int, now: float
) -> tuple[Routes, Any]:
    names = job.plan.query.names
    profiles = [StreamProfile(n, window=max(w, 1)) for n, w in zip(names, job.windows, strict=True)]
    hosts = [Host(slot) for slot in range(slots)]
    router = Groups(profiles, hosts, segment_length=1, weights=BY_TIME, group_count=GROUPS)
    router.owner = routes.owners.of(np.arange(GROUPS)).tolist()
    router.shares = shares_of(parent.state, slots, now)
    router.report({slot: Usage(cpu=load) for slot, load in busy.items()}, now=now)
    before = list(router.owner)
    router.advance(parent.epoch)
    if router.owner != before:
        routes = Routes(routes.units, owners_of(router.owner))
    return routes, remembered(router.shares)
