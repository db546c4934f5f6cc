"""Sessions that a worker keeps from one epoch to the next: a bonus, never the truth.

A session of a slot is as its log was at the end of some epoch.  If the slot comes to this worker
again, epochs that went elsewhere meanwhile are pushed from the log; if that cannot be, or would
take longer, the session is made anew from the log, without joining its rows with each other.  What
takes longer depends on how dear it is to join a row, so each session knows what it has taken.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from windjoin.epochs.job import NEED, Job
from windjoin.epochs.manifest import Entry, Manifest
from windjoin.epochs.room import room
from windjoin.epochs.routing import Routes
from windjoin.epochs.shedding import told_before, told_of
from windjoin.epochs.window import SlotWindow
from windjoin.session import Session
from windjoin.session_state import SessionOptions

FEW = 1 << 16  # rows that are pushed at once
ANEW = 2e-7  # CPU seconds in which a row comes to be in a session that is made anew, about
FOREVER = 2**62  # sessions expire by promises alone
AT_REST = 60.0  # seconds after which a session may go to make room for another one


@dataclass
class Kept:
    """A session, and the epoch it ends with."""

    session: Session
    epoch: int
    run: str
    routes: Routes
    bytes: int = 0
    used: float = 0.0  # when, by a clock that is never set
    before: Any = None  # what the slot told of its shedding when this session began
    made: tuple[float, int] = (0.0, 0)  # CPU seconds to make it, of so many rows
    joined: tuple[float, int] = (0.0, 0)  # the same of all that was pushed since

    def worth(self, missed: int, window: int) -> bool:
        """Whether to push so many rows is cheaper than to make another session of a window."""
        seconds, rows = self.joined
        taken, before = self.made
        return missed * seconds <= rows * (taken + ANEW * max(0, window - before))


_kept: OrderedDict[tuple[str, str, int], Kept] = OrderedDict()  # least recently used first


def serves(job: Job, manifest: Manifest, slot: int) -> bool:
    """Whether a session is to do the work of a slot: it can, and there is one or room for it.

    A session that is thrown away for the next one is dearer than joining with the whole window.
    """
    if job.plan.query.exclude_self or manifest.own.units.once:
        return False
    if job.shed is not None or (job.root, job.plan.identity, slot) in _kept:
        return True
    needed = NEED * sum(entry.bytes for entry in manifest.window) // manifest.slots
    return _make_room(needed, _most(job))


def _most(job: Job) -> int:
    """Bytes that all sessions of this worker may hold."""
    return room() if job.warm_bytes is None else job.warm_bytes


def _make_room(needed: int, most: int) -> bool:
    """End sessions that nobody has asked for lately, until another one fits; whether it does."""
    total, now = needed + sum(one.bytes for one in _kept.values()), time.monotonic()
    for key, one in list(_kept.items()):
        if total <= most or now - one.used < AT_REST:
            break
        total -= one.bytes
        _kept.pop(key).session.abandon()
    return 0 < most >= total


class Warm:
    """The session of a slot, ready for the rows of an epoch."""

    def __init__(self, job: Job, manifest: Manifest, slot: int, window: SlotWindow) -> None:
        self.job, self.manifest, self.slot, self.window = job, manifest, slot, window
        self.key = (job.root, job.plan.identity, slot)
        self.how = "warm"
        kept = _kept.pop(self.key, None)  # whatever ends this badly ends the session, too
        missed = None if kept is None else self._missed(kept)
        if kept is None or missed is None:
            if kept is not None:
                kept.session.abandon()
            self.how = "rebuilt"
            kept = self._rebuilt()
        else:
            self.how = "caught up" if missed else "warm"
            self._catch_up(kept, missed)
        self.kept = kept
        self.comparisons = 0  # for the rows of the epoch
        self._promise(kept.session)

    @property
    def shedding(self) -> dict[str, Any] | None:
        """What the session tells of its shedding; None if it does not shed."""
        kept = self.kept
        return None if self.job.shed is None else told_of(kept.session, kept.before)

    def results(self, new: Sequence[pa.Table]) -> Iterator[pa.Table]:
        """What the rows of the epoch complete; then the session is kept."""
        kept, before = self.kept, self._compared()
        yield from self._push(kept, new)
        self.comparisons = self._compared() - before
        kept.epoch, kept.run = self.manifest.epoch, self.manifest.run
        kept.routes, kept.bytes = self.manifest.own, kept.session.state_bytes
        kept.used = time.monotonic()
        _kept[self.key] = kept
        total = sum(one.bytes for one in _kept.values())
        while total > _most(self.job):
            _, oldest = _kept.popitem(last=False)
            total -= oldest.bytes
            oldest.session.abandon()

    def _compared(self) -> int:
        """Comparisons of the session so far."""
        live = self.kept.session._live
        assert live is not None
        return sum(live.done_by(stream)[1] for stream in range(self.job.streams))

    def _missed(self, kept: Kept) -> list[Entry] | None:
        """Epochs since that of the session; None if it had better be made anew."""
        entries = self.manifest.window
        if (kept.epoch, kept.run) not in {(entry.epoch, entry.run) for entry in entries}:
            return None
        known = [t for entry in entries for t in (*entry.low, *entry.high) if t is not None]
        if known and not kept.routes.same(self.manifest.own, min(known), max(known)):
            return None
        missed = [entry for entry in entries if entry.epoch > kept.epoch]
        if missed and self.job.shed is not None:
            return None  # what was shed elsewhere is not shed here again
        if any(entry.since >= 0 for entry in missed) or any(map(self.window.moved, missed)):
            return None
        rows, window = (sum(entry.rows for entry in some) for some in (missed, entries))
        slots = self.manifest.slots
        if not kept.worth(rows // slots, window // slots):
            return None
        return missed

    def _catch_up(self, kept: Kept, missed: Sequence[Entry]) -> None:
        for entry in missed:
            pieces = self.window.pieces([entry], prune=False)
            tables = [
                pa.Table.from_batches(own, schema)
                for own, schema in zip(pieces, self.window.schemas, strict=True)
            ]
            for _ in self._push(kept, tables):
                pass  # another worker has given these results

    def _rebuilt(self) -> Kept:
        plan, began, count = self.job.plan, time.thread_time(), 0
        session = _session(self.job)
        live, payloads = session._live, session._payloads
        assert live is not None
        for clock in live.clocks:
            clock.lateness = FOREVER
        for stream, pieces in enumerate(self.window.pieces()):
            for piece in pieces:
                rows = plan.bound.prepare(stream, piece).rows
                count += len(piece)
                live.load(stream, rows)
                payloads[stream].append(pa.Table.from_batches([piece]))
                clock = live.clocks[stream]
                clock.newest = max(clock.newest, int(rows.time[-1]))
        live.loaded(0)
        before, made = told_before(self.manifest, self.slot), (time.thread_time() - began, count)
        last = self.manifest.epoch - 1
        return Kept(session, last, "", self.manifest.own, before=before, made=made)

    def _promise(self, session: Session) -> None:
        """What is late comes no more, so rows that only it could meet may go."""
        assert session._live is not None
        for stream, mark in enumerate(self.manifest.watermarks):
            if mark is not None:
                session._live.advance(stream, mark)

    def _push(self, kept: Kept, tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
        for name, table in zip(self.job.plan.query.names, tables, strict=True):
            for first in range(0, table.num_rows, FEW):
                began, some = time.thread_time(), table.slice(first, FEW)
                found = kept.session.push(name, some)
                seconds, rows = kept.joined
                kept.joined = seconds + time.thread_time() - began, rows + some.num_rows
                assert isinstance(found, pa.Table)
                if found.num_rows:
                    yield found


def _session(job: Job) -> Session:
    plan = job.plan
    if job.shed is None:
        return Session(plan.query, plan.schemas, SessionOptions())
    from windjoin.shedding_session import SheddingSession

    return SheddingSession(plan.query, plan.schemas, SessionOptions(), job.shed)


def forget(job: Job, slot: int) -> None:
    """End the session of a slot, if there is any."""
    kept = _kept.pop((job.root, job.plan.identity, slot), None)
    if kept is not None:
        kept.session.abandon()


def expire() -> None:
    """End all sessions that are kept."""
    while _kept:
        _kept.popitem()[1].session.abandon()
