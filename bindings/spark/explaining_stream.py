"""What a continuous join will do, and what its log says it did."""

from __future__ import annotations

from windjoin.epochs.job import Job
from windjoin.epochs.reading import Log, open_log
from windjoin.epochs.routing import GROUPS
from windjoin.epochs.stores import shown
from windjoin.errors import LogError
from windjoin.figures import length
from windjoin.spark.settings import missing
from windjoin.spark.streaming import Streaming

LAST = 20  # epochs whose bytes are told


def explain_stream(planned: Streaming) -> str:
    """The plan as text, and the state of the log."""
    job = planned.job
    lines = ["continuous join", *_plan(job), f"log: {shown(job.root)}", *_log(job)]
    lines += [f"setting {one.key} is not {one.value}: {one.cost}" for one in missing(planned.spark)]
    return "\n".join(lines)


def _plan(job: Job) -> list[str]:
    units, names = job.units, job.plan.query.names
    unit = job.plan.bound.time_unit
    apart = length(units.length or 0, unit)
    told = {
        "groups": f"{GROUPS} groups of keys; each row to one slot",
        "single": "all rows to one slot",
        "atr": f"segments of {apart} of {names[units.master]}; rows of others to each"
        " slot that may need them",
        "ctr": f"every row in one slot, by segments of {apart}; partial results travel",
        "psp": f"every row in one slot, in slices of {apart}; partial results travel",
    }
    return [
        f"strategy: {units.kind} ({told[units.kind]})",
        f"slots: {job.slots}, exchanges: {job.stages}",
        f"lateness: {length(job.lateness, unit, exact=True)}",
        *([] if job.memory is None else [f"memory of a slot: {job.memory:,} bytes"]),
        *([] if job.shed is None else [f"each slot sheds load: {job.shed!r}"]),
        *(f"travels of {name}: {', '.join(job.plan.schemas[name].names)}" for name in names),
    ]


def _log(job: Job) -> list[str]:
    try:
        found = open_log(job.root)
    except LogError:
        return ["no epoch was done yet"]
    last = found.last
    held = sum(entry.bytes for entry in last.window)
    some = last.window[-LAST:]
    lines = [
        f"last epoch: {last.epoch}, {last.slots} slots, {len(last.window)} epochs in its window",
        f"held: {held} bytes, {sum(entry.rows for entry in last.window)} rows",
    ]
    if some:
        lines.append(f"each epoch: {sum(e.bytes for e in some) // len(some)} bytes")
    return lines + _streams(found)


def _streams(found: Log) -> list[str]:
    return [
        f"{name}: {counts['rows']} rows, {counts['late']} late, {counts['null_time']} without time"
        for name, counts in found.totals.items()
    ]
