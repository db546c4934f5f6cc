"""Aligned routing on slots: which stream is master, and how long segments are, as measured.

Both are decided as the router ATR does, between epochs.  What the log holds stays where it is:
slots read of it what the new segments say is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from windjoin.diffusion.atr import ATR, KEEP_MASTER
from windjoin.diffusion.load import Host
from windjoin.diffusion.segment_length import HillClimber
from windjoin.diffusion.segments import StreamProfile
from windjoin.epochs.deciding import EpochReport
from windjoin.epochs.job import Job
from windjoin.epochs.lengthening import searched
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.routing import EARLIEST, Owners, Routes, Units
from windjoin.epochs.weighing import (
    Loads,
    rates_of,
    remembered,
    shared_out,
    shares_of,
    turn_of,
)

LONGER = 16  # times what they began with: the longest segments that are tried


def follow_atr(
    job: Job, parent: Manifest, report: EpochReport, routes: Routes, loads: Loads
) -> tuple[Routes, Any]:
    """The routes of an epoch, and what to remember."""
    known = parent.state if isinstance(parent.state, dict) else {}
    shares = shares_of(parent.state, loads.slots, loads.now)
    moved = shares.follow(dict(loads.busy), now=loads.now)
    rows = rates_of(known.get("rows"), report, job.streams)
    units, climber = _lengthened(job, parent, known, routes.units, sum(rows), loads)
    units = _switched(job, units, rows)
    if units != routes.units:
        routes = Routes(units, Owners(((EARLIEST, turn_of(shares, loads.slots)),)))
    elif moved:
        routes = shared_out(parent, report, routes, shares, loads.slots)
    return routes, remembered(shares, rows=rows, length=climber)


def _switched(job: Job, units: Units, rows: Sequence[float]) -> Units:
    """The stream whose segments make others be copied least becomes master."""
    asked = job.asked
    among: Sequence[int] = range(job.streams)
    if asked is not None and len(asked.families) == 1:
        among = asked.families[0].streams  # what is told of its rows is told in one slot
    names = job.plan.query.names
    profiles = [
        StreamProfile(name, window=max(1, window), rate=max(rate, 1e-9))
        for name, window, rate in zip(names, job.windows, rows, strict=True)
    ]
    router = ATR(profiles, [Host(0)], segment_length=units.length or 1, master=units.master)
    best = min(among, key=lambda stream: (router.overhead(stream), stream))
    if router.overhead(best) < KEEP_MASTER * router.overhead(units.master):
        return replace(units, master=best)
    return units


def _lengthened(
    job: Job, parent: Manifest, known: Mapping[str, Any], units: Units, rows: float, loads: Loads
) -> tuple[Units, Any]:
    """An epoch's results leave with it, however long segments are, so each tells of its length."""
    told = known.get("length")
    assert units.length is not None
    if told is None:
        climber = HillClimber.around(units.length, LONGER * units.length)
    else:
        climber = HillClimber.from_state(told)
    if not searched(job, parent, climber, rows, loads):
        return units, told
    return replace(units, length=climber.length), climber.state()
