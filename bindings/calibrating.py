"""What units of work cost on this machine: small joins of every kind, pushed and as tables."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import thread_time_ns
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from windjoin import plan_work as work
from windjoin.fitting import fitted
from windjoin.plan_work import StateSize, Work
from windjoin.trials import Trial, trials
from windjoin.unit_costs import UnitCosts

if TYPE_CHECKING:
    from windjoin.session import Session

ENOUGH = 6_000_000  # nanoseconds of a stretch of pushes, at least
STRETCHES = 5
ROUNDS = 3

Progress = Callable[[int, int], None]
Timed = tuple[Work, float]  # what was done, and the nanoseconds that it took


def calibrated(progress: Progress | None = None, joins: Sequence[Trial] | None = None) -> UnitCosts:
    """The costs of units on this machine, from ``joins``: all there are take some seconds."""
    joins = list(trials()) if joins is None else joins
    live, batch = [], []
    for number, trial in enumerate(joins):
        live.append(pushed(trial))
        batch.append(as_tables(trial))
        if progress is not None:
            progress(number + 1, len(joins))
    shipped = UnitCosts()
    return UnitCosts(live=fitted(live, shipped.live), batch=fitted(batch, shipped.batch))


# -- what a run does ------------------------------------------------------------------------------


def pushed(trial: Trial) -> Timed:
    """Push the rows of a trial: of some stretches after windows are full the one that went best.

    What was done in it, and what it took.
    """
    names, rows = trial.query.names, trial.batch_rows
    tables = [trial.tables[name] for name in names]
    length = min(table.num_rows for table in tables)
    runs: list[Timed] = []
    with trial.query.open(schemas={n: trial.tables[n].schema for n in names}) as session:
        at = _push(session, tables, 0, lambda at, spent: at >= length // 3, rows)[0]
        gc.collect()
        while at < length and len(runs) < STRETCHES:
            before = _done(session)
            stop, spent = _push(
                session, tables, at, lambda at, spent: at >= length or spent > ENOUGH, rows
            )
            runs.append((_live_work(session, before, stop - at, trial), float(spent)))
            at = stop
    return min(runs, key=lambda run: run[1] / run[0]["row"])


def _push(
    session: Session, tables: list[pa.Table], at: int, done: Callable[[int, int], bool], rows: int
) -> tuple[int, int]:
    """Push stretches of all tables in turn: the row that comes next, and nanoseconds taken."""
    spent = 0
    names = session.query.names
    while not done(at, spent):
        parts = [table.slice(at, rows) for table in tables]
        begun = thread_time_ns()
        for name, part in zip(names, parts, strict=True):
            session.push(name, part)
        spent += thread_time_ns() - begun
        at += rows
    return at, spent


def _done(session: Session) -> list[list[dict[str, Any]]]:
    live = session._live
    assert live is not None
    return [one.measured() for _, one in live.plans()]


def _live_work(
    session: Session, before: list[list[dict[str, Any]]], rows: int, trial: Trial
) -> Work:
    """What a session did with so many rows of each stream."""
    live, bound = session._live, session._bound
    assert live is not None
    assert bound is not None
    orders = [order for order, _ in live.plans()]
    count, each = len(orders), trial.batch_rows
    windows = tuple(float(len(window)) for window in live.windows)
    known = trial.statistics(bound)
    fresh = work.fresh_keys(bound.spec, known, windows, live=True)
    held = StateSize(windows, trial.widths(bound), (rows,) * count, fresh)
    total = Work({"push": count * rows / each})
    for number in range(count):
        total.add(work.taken(bound, number, orders, held, known), rows)
        total.add(work.kept(bound, number), rows)
    results = 0.0
    for order, old, new in zip(orders, before, _done(session), strict=True):
        names = work.units_of(order, bound.spec, live=True)
        for name, step, was, now in zip(names, order.steps, old, new, strict=True):
            counts = work.counts_of(now, was)
            together = tuple(
                rows if s == order.start else min(float(each), rows / each * held.rows[s])
                for s in range(count)
            )
            total.add(work.asked(name, step, counts, replace(held, together=together)), 1.0)
        results += counts.kept
    total.add(work.given(bound), results)
    return total


def as_tables(trial: Trial) -> Timed:
    """Join the tables of a trial as they are; what was done, and the least it took."""
    least = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        begun = thread_time_ns()
        trial.query.run(trial.tables, threads=1)
        least = min(least, thread_time_ns() - begun)
    last = trial.query.runs.last()
    assert last is not None
    bound, run = last.bound, last.run
    spec, order = bound.spec, run.order
    rows = [float(trial.tables[name].num_rows) for name in trial.query.names]
    fresh = work.fresh_keys(spec, run.statistics, rows, live=False)
    held = StateSize(
        work.met(spec, order, run.statistics.rates), trial.widths(bound), tuple(rows), fresh
    )
    total = Work({"run": 1.0})
    for number, many in enumerate(rows):
        total.add(work.taken(bound, number, [order], held, run.statistics), many)
    for name, step, now in zip(
        work.units_of(order, spec, live=False), order.steps, run.hops, strict=True
    ):
        total.add(work.asked(name, step, work.counts_of(now), held), 1.0)
    total.add(work.given(bound), float(run.results))
    return total, least
