"""Deciding an epoch: what it reads, what is late, which slot owns what."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windjoin.epochs.job import BATCH_ROWS, MOST_FILES, Job
from windjoin.epochs.manifest import (
    NAME,
    Entry,
    Manifest,
    epoch_folder,
    read_manifest,
    with_routes,
)
from windjoin.epochs.marks import file_name, min_mark
from windjoin.epochs.owning import fewer_or_more
from windjoin.epochs.routing import Owners, Routes, Units
from windjoin.epochs.slotfile import Footer, read_footer
from windjoin.epochs.storage import Folder
from windjoin.errors import LogError, QueryError, quoted

SUMMED = ("results", "comparisons", "cpu", "joining", "seconds", "taken")
Marks = tuple[int | None, ...]
Router = Callable[[Job, Manifest, "EpochReport", Routes, int, float], tuple[Routes, Any]]


@dataclass(frozen=True, slots=True)
class EpochReport:
    """What the slots of an epoch left behind."""

    entry: Entry
    counts: tuple[dict[str, Any], ...]  # by stream
    loads: tuple[dict[str, Any], ...]  # by slot, of those that told


def decide(
    job: Job,
    epoch: int,
    run: str,
    *,
    now: Callable[[], float] = time.time,
    router: Router | None = None,
    slots: int | None = None,
    adopt: bool = False,
) -> Manifest:
    """The manifest of an epoch: the one that is there, or else one made now.

    ``router``: what changes owners by what slots reported.  ``slots``: how many there shall be.
    ``adopt``: an epoch that another run has decided on is done as that one decided.
    """
    known = read_manifest(job.log, epoch, run)
    if known is not None:
        return _own(job, known)
    other = _decided(job, epoch) if adopt else None
    if other is not None:
        check_same(other.query, job.described(), job.log.path())
        made = replace(other, run=run, job=job.plan.identity)
    elif epoch == 0:
        made = _first(job, run, now(), slots)
    else:
        made = _next(job, epoch, run, now(), router, slots)
    if job.log.put(f"{made.folder}/{NAME}", [made.as_bytes()]):
        _clean(job.log, made)
        return made
    known = read_manifest(job.log, epoch, run)
    assert known is not None
    return _own(job, known)


def _own(job: Job, known: Manifest) -> Manifest:
    """The manifest if it is that of this join, and not of another one in the same query."""
    if known.job != job.plan.identity:
        raise QueryError(
            f"two joins of one streaming query keep their windows in {job.log.path()}; give each"
            " windjoin.spark.stream a folder of its own with log="
        )
    return known


def _decided(job: Job, epoch: int) -> Manifest | None:
    """What any run has decided on an epoch."""
    for run in job.log.names(f"{epoch:010d}"):
        known = read_manifest(job.log, epoch, run)
        if known is not None:
            return known
    return None


def _first(job: Job, run: str, now: float, slots: int | None) -> Manifest:
    nothing: Marks = (None,) * job.streams
    count = slots or job.slots
    every = [_as_before(job, 0, Routes(job.units, Owners.in_turn(count)), count, nothing)]
    window: tuple[Entry, ...] = ()
    known = job.static
    if known is not None:
        every.append(Routes(Units(job.retention), Owners.in_turn(1)))
        window = (Entry(-1, known.folder, 1, 1, known.low, known.high, known.bytes, known.rows),)
    return Manifest(
        0, run, None, count, 0, tuple(every), _ended(job, nothing), nothing, window,
        job.described(), job.retention,
        seen=(now,) * job.streams, decided=now, schemas=job.schemas(), before=nothing,
        marks=job.asked is not None, together=job.together, job=job.plan.identity,
    )  # fmt: skip


def _next(
    job: Job, epoch: int, run: str, now: float, router: Router | None, slots: int | None
) -> Manifest:
    parent = parent_of(job.log, epoch, run)
    if parent.run != run:
        check_same(parent.query, job.described(), job.log.path())
    report = report_of(job.log, parent)
    newest, watermarks, seen = _marks(job, epoch, parent, report.counts, now)
    draft = replace(parent, watermarks=watermarks)
    there = list(_unmerged(parent, report.entry))
    window = [e for e in there if needed(draft, e)]
    gone = [e for e in there if not needed(draft, e)] if job.asked is not None else []
    count = slots or (job.slots if parent.run != run else parent.slots)
    routes, state = _routes(job, parent, report, newest, watermarks, count)
    if router is not None:
        routes, state = router(job, parent, report, routes, count, now)
    if parent.run != run:
        routes = _as_before(job, epoch, routes, count, newest)
    every, placed, own = with_routes(parent.every, [*window, *gone], routes)
    entries = placed[: len(window)]
    return Manifest(
        epoch, run, parent.run, count, own, every, watermarks, newest, entries, job.described(),
        job.retention, merge_of(entries), seen, now, report.loads,
        totals_of(job.plan.query.names, parent.totals, report), state, job.schemas(),
        parent.watermarks, placed[len(window) :], job.asked is not None, job.together,
        job.plan.identity,
    )  # fmt: skip


def parent_of(log: Folder, epoch: int, run: str) -> Manifest:
    """The epoch before: of this run if it did it, else of any run that did all of it."""
    before = epoch - 1
    runs = [name for name in log.names(f"{before:010d}") if log.has(f"{before:010d}/{name}/{NAME}")]
    if not runs:
        raise LogError(
            f"the log in {log.path()} has no epoch {before}, and epoch {epoch} builds upon it: the"
            " log was deleted, or is not that of this checkpoint; restore it, or begin anew with an"
            " empty checkpoint"
        )
    runs = [run] if run in runs else sorted(runs)
    left: list[str] = []
    for one in runs:
        known = read_manifest(log, before, one)
        assert known is not None
        left = not_written(log, known)
        if not left:
            return known
    raise LogError(
        f"epoch {before} was not computed as a whole: slots {quoted(left)} left no file in"
        f" {log.path(epoch_folder(before, runs[-1]))}; a sink has to take all rows of every epoch"
        " (limit, first and show do not), or the files were deleted: restore them, or begin anew"
        " with an empty checkpoint"
    )


def not_written(log: Folder, decided: Manifest) -> list[str]:
    """The files that slots have not written yet in an epoch."""
    wanted = [str(n) for n in range(decided.slots)]
    if decided.marks:
        wanted += [os.path.basename(file_name("", n)) for n in range(decided.slots)]
    return [n for n in wanted if not log.has(f"{decided.folder}/{n}")]


def check_same(was: dict[str, str], asked: dict[str, str], root: str) -> None:
    """Refuse to go on with another query."""
    parts = [name for name in {**was, **asked} if was.get(name) != asked.get(name)]
    if BATCH_ROWS not in was:  # older logs do not tell
        parts = [name for name in parts if name != BATCH_ROWS]
    if parts:
        told = "; ".join(
            f"{name} was {was.get(name, 'not there')}, now {asked.get(name, 'not there')}"
            for name in parts
        )
        raise QueryError(
            f"the log in {root} is of another query: {told}; go on with the query as it was, or"
            " begin anew with an empty checkpoint"
        )


def report_of(log: Folder, done: Manifest) -> EpochReport:
    """What the slots of an epoch wrote."""
    footers = [read_footer(log, f"{done.folder}/{slot}") for slot in range(done.slots)]
    loads = loads_of(log, done)
    counts = next((footer.counts for footer in footers if footer.counts), ())
    marks = []
    if done.marks:
        marks = [read_footer(log, file_name(done.folder, n)) for n in range(done.slots)]
    return EpochReport(_entry(done, footers, marks), counts, loads)


def loads_of(log: Folder, done: Manifest) -> tuple[dict[str, Any], ...]:
    """What the slots of an epoch were measured to do, in all stages of it."""
    told: dict[int, dict[str, Any]] = {}
    for name in log.names(done.folder):
        if name.endswith(".load"):
            load = log.read_json(f"{done.folder}/{name}")
            own = told.setdefault(load["slot"], load)
            if own is not load:
                for key in SUMMED:
                    own[key] = own.get(key, 0) + load.get(key, 0)
    return tuple(told[slot] for slot in sorted(told))


def _entry(done: Manifest, footers: Sequence[Footer], marks: Sequence[Footer]) -> Entry:
    sections = [one for footer in footers for one in footer.sections if not one.apart]
    streams = range(len(done.windows))
    low = [min((o.low for o in sections if o.stream == s), default=None) for s in streams]
    high = [max((o.high for o in sections if o.stream == s), default=None) for s in streams]
    return Entry(
        done.epoch, done.run, done.slots, done.routes, tuple(low), tuple(high),
        sum(one.length for one in sections), sum(one.rows for one in sections),
        -1 if done.merge is None else done.merge[0],
        max((one.high for footer in marks for one in footer.sections), default=None), done.marks,
    )  # fmt: skip


def _marks(
    job: Job, epoch: int, parent: Manifest, counts: Sequence[dict[str, Any]], now: float
) -> tuple[Marks, Marks, tuple[float, ...]]:
    """Newest times, watermarks, and when streams were last heard of.

    Another run may have decided on this epoch already, and a sink may have heard of it: what is
    late stays so.
    """
    known = _decided(job, epoch)
    if known is not None:
        return known.newest, known.watermarks, known.seen
    told = {count["stream"]: count for count in counts}
    newest, marks, seen = [], [], []
    for stream, before in enumerate(parent.newest):
        latest = _later(before, told.get(stream, {}).get("newest"))
        newest.append(latest)
        reached = None if latest is None else max(-(2**63), latest - job.lateness)
        marks.append(_later(parent.watermarks[stream], reached))
        heard = told.get(stream, {}).get("rows", 0) > 0
        seen.append(now if heard or not parent.seen else parent.seen[stream])
    return tuple(newest), _ended(job, _idle(job, marks, seen, now)), tuple(seen)


def _ended(job: Job, marks: Marks) -> Marks:
    """No more rows come of streams that do not grow."""
    ended = () if job.static is None else job.static.streams
    return tuple(2**63 - 1 if s in ended else mark for s, mark in enumerate(marks))


def _idle(job: Job, marks: list[int | None], seen: list[float], now: float) -> Marks:
    """A silent stream has come as far as the last of those that are not."""
    limits = job.idle or (None,) * len(marks)
    silent = [
        limit is not None and now - at >= limit for limit, at in zip(limits, seen, strict=True)
    ]
    awake = [mark for mark, quiet in zip(marks, silent, strict=True) if not quiet]
    known = [mark for mark in awake if mark is not None]
    if not known or len(known) < len(awake):
        return tuple(marks)
    return tuple(
        _later(mark, min(known)) if quiet else mark
        for mark, quiet in zip(marks, silent, strict=True)
    )


def _later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _unmerged(parent: Manifest, last: Entry) -> Iterable[Entry]:
    """The entries of the parent and itself, without those that its files stand for."""
    for entry in parent.window:
        if parent.merge is None or not parent.merge[0] <= entry.epoch <= parent.merge[1]:
            yield entry
    yield last


def needed(manifest: Manifest, entry: Entry) -> bool:
    """Whether any row of an entry may still meet a row to come, or marks of it be asked for."""
    if entry.until is not None and entry.until >= min_mark(manifest.watermarks):
        return True
    for stream, latest in enumerate(entry.high):
        if latest is not None:
            horizon = manifest.horizon(stream)
            if horizon is None or latest >= horizon:
                return True
    return False


def merge_of(window: Sequence[Entry]) -> tuple[int, int] | None:
    """Epochs whose rows are to be written together, if a window has come to be of many files."""
    if len(window) <= MOST_FILES:
        return None
    single = [entry for entry in window if entry.since < 0]
    if len(single) <= MOST_FILES // 2:
        single = list(window)
    last = single[-1].epoch
    # neighbours only: an epoch in between that is merged already is merged again
    return single[0].epoch, last


def _routes(
    job: Job, parent: Manifest, report: EpochReport, newest: Marks, watermarks: Marks, slots: int
) -> tuple[Routes, Any]:
    units, own = job.units, parent.own
    kept = units.kind == own.units.kind and (
        not job.chosen_segment or units.length == own.units.length
    )
    if not kept:
        return Routes(units, Owners.in_turn(slots)), None
    owners = own.owners
    if slots != parent.slots:
        owners = fewer_or_more(own, slots, newest)
    known = [mark for mark in watermarks if mark is not None]
    if own.units.length is not None and len(known) == len(watermarks):
        entries = [*parent.window, report.entry]
        lows = [low for entry in entries for low in entry.low if low is not None]
        owners = owners.without(own.units.between(min([*known, *lows]), 0)[0])
    return Routes(own.units, owners), parent.state


def _as_before(job: Job, epoch: int, routes: Routes, slots: int, newest: Marks) -> Routes:
    """Routes by the units of another run that has decided on this epoch, if there is one.

    In which epoch rows without partners come out depends on units; a sink may have taken what the
    other run found, or takes what is found now.
    """
    other = _decided(job, epoch)
    if other is not None:
        check_same(other.query, job.described(), job.log.path())
    if other is None or other.own.units == routes.units or other.stages != job.stages:
        return routes
    same = other.slots == slots
    owners = other.own.owners if same else fewer_or_more(other.own, slots, newest)
    return Routes(other.own.units, owners)


def totals_of(names: Sequence[str], before: dict[str, Any], report: EpochReport) -> dict[str, Any]:
    """Counts of all epochs up to the one reported."""
    sums = {name: dict(counts) for name, counts in before.items()}
    for count in report.counts:
        own = sums.setdefault(names[count["stream"]], {})
        for name in ("rows", "late", "null_time", "unmatchable"):
            own[name] = own.get(name, 0) + count[name]
    return sums


def _clean(log: Folder, made: Manifest) -> None:
    """Delete what no restart can need: it would do this epoch again, from the one before."""
    keep = {made.epoch, made.epoch - 1, *(entry.epoch for entry in made.window)}
    parent = None if made.parent is None else read_manifest(log, made.epoch - 1, made.parent)
    keep |= set() if parent is None else {entry.epoch for entry in parent.window}
    for name in log.names():
        if name.isdigit() and int(name) < made.epoch and int(name) not in keep:
            log.remove(name)


def as_json(value: Any) -> bytes:
    """For small files beside the slots'."""
    return json.dumps(value).encode()
