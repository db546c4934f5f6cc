"""Slots as the hosts of the routers CTR and PSP of `diffusion`, asked between epochs.

A router counts time in units: segments one unit long.  It places those that rows have come for, and
those that the next epoch is expected to bring; what comes beyond goes to slots in turn.  As the log
is shared, what a router calls a copy or a move is only who reads which files.

A router completes a result from its latest row, which looks for earlier ones.  An epoch completes
it from its first new row, whose partners may be later too; so a path is asked for that reaches as
far on as the row's own window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any

from windjoin.diffusion.ctr import CTR
from windjoin.diffusion.load import Host, Usage, Weights
from windjoin.diffusion.meter import ALIKE, READINGS
from windjoin.diffusion.psp import PSP
from windjoin.diffusion.registry import make
from windjoin.diffusion.ring_slices import Spent
from windjoin.diffusion.router import Hop, Router
from windjoin.diffusion.segment_length import HillClimber
from windjoin.diffusion.segments import NEVER, Segment, StreamProfile
from windjoin.diffusion.shares import Shares
from windjoin.diffusion.spending import LEAST_ROWS, spent_of_late
from windjoin.epochs.deciding import EpochReport
from windjoin.epochs.hopping import order_from
from windjoin.epochs.job import Job
from windjoin.epochs.lengthening import searched
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.placing import NOBODY, HopPath, Placed, UnitSlots, copies_for
from windjoin.epochs.routing import EARLIEST, MOST_UNITS, Owners, Routes, Units
from windjoin.epochs.weighing import (
    NEW,
    Loads,
    rates_of,
    remembered,
    shared_out,
    shares_of,
    turn_of,
)
from windjoin.kernels.spec import JoinSpec

BY_TIME = Weights(cpu=1.0, memory=0.0, network=0.0)  # a slot is as loaded as it is busy
AHEAD = 1.5  # times as far as epochs go on average is the next one expected to go
LINKED = 0.1  # share of the pairs that match by a condition of which nothing was measured
LEAST = 1e-9
SOME = 8  # a slot with less than such a part of its even share does not show how fast it is
# any slot may read at once, so there is nothing to warm up; and as a hop is free where no host is
# added, whatever it makes, streams are probed in the order that makes the fewest partial results
COVERS = {"warm_up_copies": 2, "max_orders": 1}
EACH = 2  # segments of an epoch for each slot, in covers
MOST_SEGMENTS = 256  # of a window, if nobody says how long they are
MOST_PATHS = 256  # of a stream in an epoch; rows of older segments meet others where those lie


def follow_hops(
    job: Job, parent: Manifest, report: EpochReport, routes: Routes, loads: Loads
) -> tuple[Routes, Any]:
    """The routes of an epoch, and what to remember."""
    known = parent.state if isinstance(parent.state, dict) else {}
    shares = shares_of(parent.state, loads.slots, loads.now)
    before = turn_of(shares, loads.slots)
    rows = rates_of(known.get("rows"), report, job.streams)
    memory: dict[str, Any] = {"rows": rows, "pairs": _pairs(job, known.get("pairs"), report)}
    units, memory["length"] = _lengthened(job, parent, known, routes.units, sum(rows), loads)
    if units != routes.units:
        routes = Routes(units, Owners(((EARLIEST, before),)))
    extent = _extent(parent, report, units, known.get("reach"))
    if extent is None:
        if shares.follow(dict(loads.busy), now=loads.now):
            routes = shared_out(parent, report, routes, shares, loads.slots)
        return routes, remembered(shares, **memory)
    profiles = _profiles(job, units, extent, rows, memory["pairs"])
    same = known.get("units") == units.told()
    state = known.get("router") if same else None
    router = _router(units, profiles, loads.slots, state)
    memory["paces"] = _paces(known.get("paces"), report, loads.slots)
    memory["spent"] = _spent(known.get("spent"), report)
    _report(router, shares, extent, loads, memory["paces"])
    if memory["spent"] is not None:
        router.learn_costs(Spent(*memory["spent"]))
    if turn_of(shares, loads.slots) != before:
        routes = shared_out(parent, report, routes, shares, loads.slots)
    router.expire(extent.oldest)
    if isinstance(router, CTR):
        _place(router, extent, extent.frontier, rows)
        placed, state = _covered(router, job, parent, units, extent, rows), router.state()
    else:
        assert isinstance(router, PSP)
        _place(router, extent, extent.latest + 1, rows)
        state = router.state()
        _place(router, extent, extent.frontier, rows)  # expected only, so it is not remembered
        placed = _sliced(router, job)
    memory |= {"router": state, "units": units.told(), "reach": extent.reach * (units.length or 1)}
    return replace(routes, placed=placed), remembered(shares, **memory)


def _lengthened(
    job: Job, parent: Manifest, known: Mapping[str, Any], units: Units, rows: float, loads: Loads
) -> tuple[Units, Any]:
    """Covers need some segments in each epoch: all new rows of one segment take one path.

    From there the search goes on, and begins anew where epochs have come to reach further.
    """
    reach, told = known.get("reach"), known.get("length")
    assert units.length is not None
    if units.once != "ctr" or job.chosen_segment or not reach:
        return units, told
    longest = max(units.windows)
    least = max(longest // MOST_SEGMENTS, 1)
    wanted, around = max(int(reach / (EACH * loads.slots)), least), units.length
    climber = None
    if told is not None:
        around, climber = told["around"], told["climber"]
    if wanted > 2 * around or around > 2 * wanted:
        return replace(units, length=wanted), {"around": wanted, "climber": None}
    if climber is None:
        search = HillClimber(units.length, min(least, units.length), max(longest, units.length))
    else:
        search = HillClimber.from_state(climber)
    if not searched(job, parent, search, rows, loads, lasts=longest):
        return units, told
    return replace(units, length=search.length), {"around": around, "climber": search.state()}


@dataclass(frozen=True, slots=True)
class Extent:
    """Which units rows have come for, and will."""

    oldest: int  # older ones can meet nothing that is not late
    latest: int
    came: int  # how many units the last epoch went on
    reach: float  # the same on average

    @property
    def frontier(self) -> int:
        """The first unit that is not expected in the next epoch."""
        return self.latest + 2 + int(AHEAD * self.reach)


def _extent(
    parent: Manifest, report: EpochReport, units: Units, reach: float | None
) -> Extent | None:
    """None if no row has come, or if there are too many units to look at each."""
    before = [time for time in parent.newest if time is not None]
    told = [time for time in report.entry.high if time is not None]
    lows = [low for e in (*parent.window, report.entry) for low in e.low if low is not None]
    if not told and not before:
        return None
    assert units.length is not None
    longest = -(-max(units.windows) // units.length)
    latest = max([*before, *told]) // units.length
    if 4 * longest > MOST_UNITS or abs(latest) > -NEVER // 4:
        return None
    firsts = [time for time in report.entry.low if time is not None]
    since = max(before) // units.length if before else min(firsts, default=latest) // units.length
    came = min(max(0, latest - since), 2 * longest + 1)
    known = None if reach is None else reach / units.length
    average = float(came) if known is None else known + NEW * (came - known)
    reached = [-(2**63) if mark is None else mark for mark in parent.watermarks]
    oldest = max(min(reached), min(lows, default=latest * units.length)) // units.length
    return Extent(max(min(oldest, latest), latest - 2 * longest), latest, came, average)


def _profiles(
    job: Job, units: Units, extent: Extent, rows: Sequence[float], pairs: Sequence[Sequence[float]]
) -> list[StreamProfile]:
    """The streams as routers know them, by units of time."""
    assert units.length is not None
    each = max(extent.reach, 1.0)
    return [
        StreamProfile(name, -(-window // units.length), max(count / each, LEAST), tuple(own))
        for name, window, count, own in zip(
            job.plan.query.names, units.windows, rows, pairs, strict=True
        )
    ]


def _router(
    units: Units, profiles: Sequence[StreamProfile], slots: int, state: Mapping[str, Any] | None
) -> Router:
    """As it was, with the slots that there are now."""
    assert units.once is not None
    hosts = [Host(slot) for slot in range(slots)]
    if state is not None:
        hosts = [Host(*values) for values in state["book"]["hosts"]]
    options = COVERS if units.once == "ctr" else {}
    router = make(units.once, profiles, hosts, segment_length=1, weights=BY_TIME, **options)
    if state is not None:
        router.restore(state)
    there = {host.number for host in router.book.hosts}
    for slot in sorted(set(range(slots)) - there):
        router.add_host(Host(slot))
    for slot in sorted(there - set(range(slots)), reverse=True):
        router.remove_host(slot, lost=True)  # others read what it has written
    return router


def _report(
    router: Router, shares: Shares, extent: Extent, loads: Loads, paces: Sequence[Sequence[float]]
) -> None:
    """What slots were measured to do: a ring's slices follow their loads, covers their paces."""
    rates = [profile.rate for profile in router.profiles]
    if isinstance(router, PSP):
        router.shares = shares  # which it has follow the loads itself
        busy = {slot: Usage(cpu=load) for slot, load in loads.busy.items()}
        router.report(busy, rates=rates, now=loads.now)
        return
    known = [median_low(own) if own else None for own in paces]
    usual = median_low([own for own in known if own is not None] or [1.0])
    for slot, own in enumerate(known[: loads.slots]):
        slow = 1.0 if own is None or own <= ALIKE * usual else own / max(usual, LEAST)
        router.book.calibrate(Host(slot, cpu=1 / slow))
    done = dict.fromkeys(range(loads.slots), Usage())  # an epoch begins when all have ended theirs
    router.report(done, rates=rates, since=max(extent.latest, router.border) + 1, now=loads.now)


def _spent(before: Sequence[float] | None, report: EpochReport) -> Spent | None:
    """What slots spend on rows, for a ring's cost model; an epoch's rows travel together.

    A hop reaches all slots in one exchange, so a longer ring waits for no more of them.
    """
    known = None if before is None else Spent(*before)
    rows = sum(count["rows"] for count in report.counts)
    told = [load for load in report.loads if "joining" in load]
    taken = sum(load["taken"] for load in told)
    if rows < LEAST_ROWS or not taken:
        return known
    joining = sum(load["joining"] for load in told)
    aside = max(sum(load["cpu"] for load in told) - joining, 0.0)
    return spent_of_late(known, Spent(joining / rows, aside / taken, 0.0, float(rows)))


def _paces(
    before: Sequence[Sequence[float]] | None, report: EpochReport, slots: int
) -> list[list[float]]:
    """Seconds for a row or partial result, in the last epochs in which a slot had some."""
    found = [list(own) for own in before or ()][:slots]
    found += [[] for _ in range(slots - len(found))]
    taken = {one["slot"]: one.get("taken", one["rows"]) for one in report.loads}
    for one in report.loads:
        slot, rows = one["slot"], taken[one["slot"]]
        if slot < slots and rows * len(taken) * SOME > sum(taken.values()):
            found[slot] = [*found[slot], one["seconds"] / rows][-READINGS:]
    return found


def _place(router: Router, extent: Extent, stop: int, rows: Sequence[float]) -> None:
    """All segments before ``stop`` that were not placed yet."""
    each = [int(count / max(extent.reach, 1.0)) for count in rows]
    for border in range(max(router.border + 1, extent.oldest), stop):
        router.advance(border)
        for stream, count in enumerate(each):
            router.place(Segment(stream, border, border + 1, rows=count))


# -- the ring


def _sliced(ring: PSP, job: Job) -> Placed:
    """Stretches of time by slot, as they are when the next epoch has come."""
    written = []
    for held in ring.held:
        first = held[0][1]
        slots = [NOBODY] * (held[-1][2] - first)
        for host, start, stop in held:
            slots[start - first : stop - first] = [host] * (stop - start)
        written.append(UnitSlots(first, tuple(slots)))
    last = ring.border
    orders = []
    for stream in range(job.streams):
        path = ring.path(Segment(stream, last, last + 1))
        orders.append((stream, *(hop.streams[0] for hop in path.hops)))
    return Placed(tuple(written), orders=tuple(orders))


# -- covers


def _covered(
    router: CTR, job: Job, parent: Manifest, units: Units, extent: Extent, rows: Sequence[float]
) -> Placed:
    """Where segments are, and the paths of those that rows may come for."""
    table: Any = router.table.dump()
    held: list[dict[int, list[int]]] = [{at: hosts for at, _, hosts in own} for own in table]
    written = tuple(_written(stream, own) for stream, own in enumerate(held))
    orders = {order_from(job.plan.bound.spec, s): s for s in range(job.streams)}
    paths = []
    for stream, own in enumerate(held):
        count = int(rows[stream] / max(extent.reach, 1.0))
        for unit in _expected(parent, units, extent, stream, own)[-MOST_PATHS:]:
            reach = -(-units.windows[stream] // (units.length or 1))
            few = count if unit > extent.latest else 0
            path = router.path(Segment(stream, unit, unit + 1 + reach, rows=few))
            order = (stream, *(hop.streams[0] for hop in path.hops))
            readers = tuple(_readers(hop, held[hop.streams[0]]) for hop in path.hops)
            paths.append(HopPath(stream, unit, orders.setdefault(order, len(orders)), readers))
    return Placed(written, copies_for(tuple(orders), paths), tuple(orders), tuple(paths))


def _expected(
    parent: Manifest, units: Units, extent: Extent, stream: int, held: Mapping[int, Any]
) -> list[int]:
    """The segments of a stream that rows may come for."""
    mark = parent.watermarks[stream]
    assert units.length is not None
    since = extent.oldest if mark is None else mark // units.length
    return [unit for unit in held if since <= unit < extent.frontier]


def _written(stream: int, held: Mapping[int, Sequence[int]]) -> UnitSlots:
    """Of the slots of each segment one that writes it: they take turns."""
    first, stop = min(held), max(held) + 1
    slots = [NOBODY] * (stop - first)
    for unit, hosts in held.items():
        slots[unit - first] = hosts[(unit + stream) % len(hosts)]
    return UnitSlots(first, tuple(slots))


def _readers(hop: Hop, held: Mapping[int, Sequence[int]]) -> UnitSlots:
    """Who reads each segment in a hop: a host of the hop that has it, where it is not void."""
    void: dict[int, set[int]] = {}
    for host, stretches in hop.voids.items():
        void[host] = {unit for start, stop in stretches for unit in range(start, stop)}
    there = set(hop.hosts)
    found = {}
    for unit, hosts in held.items():
        own = [h for h in hosts if h in there and unit not in void.get(h, ())]
        if len(own) == 1:
            found[unit] = own[0]
    if not found:
        return UnitSlots()
    first, stop = min(found), max(found) + 1
    return UnitSlots(first, tuple(found.get(unit, NOBODY) for unit in range(first, stop)))


# -- what is measured


def _pairs(
    job: Job, before: Sequence[Sequence[float]] | None, report: EpochReport
) -> list[list[float]]:
    """Share of the pairs of rows of two streams that match, from first hops."""
    spec, every = job.plan.bound.spec, range(job.streams)
    shares = [list(own) for own in before] if before else [_guessed(spec, s) for s in every]
    met: dict[tuple[int, int], list[int]] = {}
    for load in report.loads:
        for first, second, candidates, found in load.get("met", ()):
            own = met.setdefault((min(first, second), max(first, second)), [0, 0])
            own[0] += candidates
            own[1] += found
    for (a, b), (candidates, found) in met.items():
        if candidates:
            share = min(1.0, max(found / candidates, LEAST))
            shares[a][b] = shares[b][a] = shares[a][b] + NEW * (share - shares[a][b])
    return shares


def _guessed(spec: JoinSpec, stream: int) -> list[float]:
    linked = [p.streams_read for p in spec.predicates]
    return [
        LINKED if s != stream and {s, stream} in linked else 1.0 for s in range(len(spec.streams))
    ]
