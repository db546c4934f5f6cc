"""Joins of live streams with windows of rows: in epochs, as all streams come on.

Which rows a window holds at a time is known once all rows before that time have come.  Until then
rows wait; then they are joined together with what windows hold, each result by its latest row.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
from windjoin.kernels.final import FOREVER, LAST, FinalJoin, TimeQueue, come_to
from windjoin.kernels.hosted import HostJoin
from windjoin.kernels.intake import Silencing
from windjoin.kernels.order import Order
from windjoin.kernels.row_windows import ADDED, counted, longest_held, until_columns, with_columns
from windjoin.kernels.spec import I64, JoinSpec, Rows
from windjoin.kernels.statistics import unseen
from windjoin.kernels.window import LONG_AGO
from windjoin.pyx.base.pieces import sorting_by

ROOM = 2  # times as long as rows are held now, the window of time is made
MUCH = 8  # times as long, it is made shorter

TimesAndRows = tuple[I64, I64]
NONE = np.empty(0, np.int64), np.empty(0, np.int64)


class CountedJoin(FinalJoin):
    """State of one continuous join with windows of rows; not for two threads at a time."""

    added = ADDED

    def __init__(self, spec: JoinSpec, lateness: int = 0, silence: Silencing | None = None) -> None:
        super().__init__(with_columns(spec), lateness, silence)
        self._counted = counted(spec)
        self._pending = [TimeQueue() for _ in spec.streams]
        self._last: dict[int, TimesAndRows] = dict.fromkeys(self._counted, NONE)
        self._raised = threading.Event()
        self._done = [(0, 0)] * len(spec.streams)
        self._results = [0] * len(spec.streams)
        self._host = self._new_host()

    def _new_host(self) -> HostJoin:
        return HostJoin(self.spec, self.windows, unseen(self.spec), self._raised)

    def _final(self) -> int:
        return min(come_to(clock) for clock in self.clocks)

    def counts_all(self, stream: int) -> bool:
        """Rows of a window of rows leave it whether they match anything or not."""
        return stream in self._last

    def _extended(self, rows: Rows) -> Rows:
        until = until_columns(np.full(len(rows), LAST), np.zeros(len(rows), np.bool_))
        return replace(rows, columns=[*rows.columns, rows.time, *until])

    def _came(self, stream: int, time: I64, numbers: I64) -> None:
        self._pending[stream].add(time, numbers)

    # -- an epoch ------------------------------------------------------------------------------

    def _joined(self, before: int) -> list[I64]:
        come = [in_order(*pending.before(before)) for pending in self._pending]
        if not any(len(time) for time, _ in come):
            return self._none()
        latest = max(int(time[-1]) for time, _ in come if len(time))
        for stream in self._counted:
            self._count(stream, come[stream], latest)
        rows = [self._usable(stream, numbers) for stream, (_, numbers) in enumerate(come)]
        for stream, numbers in enumerate(rows):
            self._host.store(stream, numbers)
        everything = range(len(rows))
        found = [self._none()]
        for stream, numbers in enumerate(rows):
            others = tuple(k for k in everything if k != stream)
            if len(numbers):
                members = self._host.extend(
                    (stream,), others, [numbers], {}, lambda k: self._held(k, before)
                )
                by_stream = dict(zip((stream, *others), members, strict=True))
                found.append([by_stream[k] for k in everything])
                self._results[stream] += len(members[0])
        return [np.concatenate(column) for column in zip(*found, strict=True)]

    def _usable(self, stream: int, numbers: I64) -> I64:
        """Those that can be part of a result; others only count, and go while they wait."""
        window = self.windows[stream]
        here = numbers[numbers >= window.head]
        usable: I64 = here[window.times(here) != LONG_AGO]
        return usable

    def _held(self, stream: int, before: int) -> I64:
        """All rows of a stream that are here and final, in order of time."""
        window = self.windows[stream]
        rows = np.arange(window.head, window.tail)
        time = window.times(rows)
        there = (time != LONG_AGO) & ((time < before) | (before == FOREVER))
        return in_order(time[there], rows[there])[1]

    def _count(self, stream: int, come: TimesAndRows, latest: int) -> None:
        """Rows come into a window of rows: for others it is known now until when they are held."""
        count = self.spec.streams[stream].rows
        time = np.concatenate([self._last[stream][0], come[0]])
        rows = np.concatenate([self._last[stream][1], come[1]])
        until = np.full(len(rows), LAST)
        until[:-count] = time[count:]
        left = max(len(rows) - count, 0)
        self._hold_until(stream, rows[:left], until[:left])
        self._last[stream] = time[left:].copy(), rows[left:].copy()
        longest = longest_held(time, until, latest)
        window = self.spec.streams[stream].window
        if longest > window or MUCH * longest < window:
            self._resize(stream, min(ROOM * longest, LAST))

    def _hold_until(self, stream: int, rows: I64, until: I64) -> None:
        rings = self.windows[stream].rings[1][-ADDED + 1 :]
        here = rows >= self.windows[stream].head
        for ring, values in zip(
            rings, until_columns(until, np.ones(len(until), np.bool_)), strict=True
        ):
            ring.set(rows[here], values[here])

    def _resize(self, stream: int, window: int) -> None:
        """Rows are held longer than before, or not nearly as long.

        An index that has been told to expire rows is not asked for them again: there is a new one.
        """
        streams = list(self.spec.streams)
        longer = window > streams[stream].window
        streams[stream] = replace(streams[stream], window=window)
        self.spec = replace(self.spec, streams=tuple(streams))
        for side, spec in zip(self.windows, streams, strict=True):
            side.spec = spec
        self.resized()
        self._host.spec = self.spec
        for side, spec in zip(self._host.windows, streams, strict=True):
            side.spec = spec
        self._rebuild([stream] if longer else [])

    def _rebuild(self, streams: list[int]) -> None:
        """New indexes of some streams, and new pipelines."""
        if streams:
            for stream in streams:
                self._host.hold(stream, self._held(stream, self._before))
        else:
            self._host.replan()

    def _expire(self) -> None:
        if self._before == LONG_AGO:
            return
        for stream, spec in enumerate(self.spec.streams):
            horizon = max(min(self._before, LAST) - spec.window, LONG_AGO)
            if stream in self._last and len(self._last[stream][0]):
                horizon = min(horizon, int(self._last[stream][0][0]))
            self._stores[stream].expire(horizon)
            self._host.expire(stream, horizon)

    # -- from elsewhere ------------------------------------------------------------------------

    @property
    def pairs(self) -> list[Any]:
        """Rows that count, by stream, and whether they wait: the rings do not tell."""
        parts = []
        for stream in self._counted:
            waiting = in_order(*self._pending[stream].all())
            for waits, (time, rows) in ((0, self._last[stream]), (1, waiting)):
                parts.append([np.full(len(rows), stream), np.full(len(rows), waits), time, rows])
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def resume_pairs(self, columns: list[Any]) -> None:
        """Count where another left off."""
        streams, waits, time, rows = columns
        for stream in self._counted:
            last, waiting = ((streams == stream) & (waits == one) for one in (0, 1))
            self._last[stream] = time[last], rows[last]
            self._pending[stream].add(time[waiting], rows[waiting])

    def loaded(self, given_before: int) -> list[Any]:
        """Index the rows that have been joined; let the others wait."""
        self._before = given_before
        for stream in range(len(self.windows)):
            if stream not in self._last:
                self._pending[stream].add(*self._waiting_rows(stream))
                continue
            held = self._held(stream, given_before)
            gone = held[~np.isin(held, self._last[stream][1])]
            self._hold_until(stream, gone, np.full(len(gone), LONG_AGO))
            times = self._last[stream][0]
            if len(times):
                now = max(given_before, int(times[-1]))
                self._resize(stream, min(ROOM * (now - int(times[0])), LAST))
        self._rebuild(list(range(len(self.windows))))
        return self._scored(self._none())

    def resume(self, results: int, done: list[tuple[int, int]]) -> None:
        """Go on counting where another left off."""
        self._found, self._done = results, done

    # -- keeping small, looking ------------------------------------------------------------------

    def _sweep(self) -> None:
        self._host.compact()
        super()._sweep()

    def _renew(self) -> None:
        self._renumber({})
        self._rebuild(list(range(len(self.windows))))

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows, indexes, keys and rows that wait."""
        pending = sum(pending.nbytes for pending in self._pending)
        last = sum(rows.nbytes + time.nbytes for time, rows in self._last.values())
        return super().nbytes + self._host.nbytes + pending + last

    @property
    def comparisons(self) -> int:
        """Candidates looked at so far."""
        return sum(self.done_by(stream)[1] for stream in range(len(self.windows)))

    def done_by(self, stream: int) -> tuple[int, int]:
        """Results that rows of a stream completed, and candidates looked at for that."""
        results, looked_at = self._done[stream]
        return results + self._results[stream], looked_at + self._host.comparisons[stream]

    def plans(self) -> list[tuple[Order, Any]]:
        """How rows find their partners, by the stream that they are of."""
        return [(order, _Measured(hops)) for _, order, hops in self._host.ways()]

    def structures(self, order: Order) -> list[set[str]]:
        """What the indexes are."""
        windows = self._host.windows
        indexes = (windows[step.stream].indexes[step.access.identity] for step in order.steps)
        return [{type(index).__name__} for index in indexes]


class _Measured:
    """What hops measured, also those of pipelines that are gone."""

    def __init__(self, hops: list[dict[str, int]]) -> None:
        self._hops = hops

    def measured(self) -> list[dict[str, int]]:
        """As a pipeline has it."""
        return self._hops


def in_order(time: I64, rows: I64) -> TimesAndRows:
    """The same in order of time, equal times as they arrived."""
    if len(rows) < 2:
        return time, rows
    order = sorting_by([rows, time])
    return time[order], rows[order]
