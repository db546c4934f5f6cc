"""Joins of live streams that join a row once it is final: when nothing earlier can come.

Rows are stored as they come and wait, in order of time; `_joined` of a subclass joins those that
are final.  What is found is final too, and nothing of it is taken back.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from typing import Any

import numpy as np
from windjoin.kernels.intake import LateSplit, Silencing
from windjoin.kernels.outer import Outer
from windjoin.kernels.spec import I64, Bools, JoinSpec, Rows
from windjoin.kernels.storing import StoringJoin
from windjoin.kernels.window import LONG_AGO
from windjoin.pyx.base.column import time_order
from windjoin.pyx.live.store import Watermark

LAST = 2**63 - 1  # time
FOREVER = LAST + 1


def come_to(clock: Watermark) -> int:
    """The least time of rows to come; `FOREVER`: none will."""
    return FOREVER if clock.promised == LAST else clock.watermark


class TimeQueue:
    """Rows that wait, by number, to be taken in order of time."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int, I64, I64]] = []  # a heap: first time, number, both
        self._count = 0
        self.rows = 0

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return 16 * self.rows

    def add(self, time: I64, rows: I64) -> None:
        """More rows, in order of time."""
        if len(rows):
            self._push(time, rows)
            self.rows += len(rows)

    def _push(self, time: I64, rows: I64) -> None:
        self._count += 1
        heapq.heappush(self._parts, (int(time[0]), self._count, time, rows))

    def before(self, bound: int) -> tuple[I64, I64]:
        """Take times and rows before ``bound``, in no order; `FOREVER`: all."""
        taken: list[tuple[I64, I64]] = []
        while self._parts and (self._parts[0][0] < bound or bound == FOREVER):
            _, _, time, rows = heapq.heappop(self._parts)
            n = len(rows) if bound == FOREVER else int(np.searchsorted(time, bound))
            taken.append((time[:n], rows[:n]))
            if n < len(rows):
                self._push(time[n:], rows[n:])
        self.rows -= sum(len(rows) for _, rows in taken)
        if len(taken) == 1:
            return taken[0]
        return _joined([time for time, _ in taken]), _joined([rows for _, rows in taken])

    def all(self) -> tuple[I64, I64]:
        """Times and rows of all that wait, which go on waiting."""
        times, rows = [part[2] for part in self._parts], [part[3] for part in self._parts]
        return _joined(times), _joined(rows)


def _joined(parts: list[I64]) -> I64:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class FinalJoin(StoringJoin):
    """What such joins have in common."""

    def __init__(self, spec: JoinSpec, lateness: int = 0, silence: Silencing | None = None) -> None:
        super().__init__(spec, lateness, silence)
        self._found = 0
        self._before = LONG_AGO  # rows with an earlier time have been joined
        if spec.kept is not None:
            self.outer = Outer(spec.kept, self.windows)

    @abstractmethod
    def _final(self) -> int:
        """Rows with an earlier time can be joined."""

    @abstractmethod
    def _came(self, stream: int, time: I64, numbers: I64) -> None:
        """Rows have been stored that wait now, or can be asked for."""

    @abstractmethod
    def _joined(self, before: int) -> list[I64]:
        """Results of the rows that wait and have an earlier time; no one asks for them again."""

    @abstractmethod
    def _expire(self) -> None:
        """Forget what no row to come can meet."""

    # -- rows in, results out ------------------------------------------------------------------

    def stored(self, stream: int, time: I64, numbers: I64, first: int, count: int) -> list[Any]:
        """Rows wait now, or can be asked for; results of all rows that are final."""
        self._came(stream, time, numbers)
        found = self.catch_up()
        self._maintain_sometimes(count)
        return found

    def _joined_of(
        self, stream: int, rows: Rows, usable: Bools | None, late_split: LateSplit
    ) -> Bools | None:
        return late_split.but_late(rows.present) if self.counts_all(stream) else usable

    def advance(self, stream: int, time: int) -> None:
        """Nothing of a stream before ``time`` will come any more."""
        clock = self.clocks[stream]
        clock.promised = max(clock.promised, time)
        if self.silence is not None:
            self.silence.heard(stream)
        self._maintain_sometimes(1)

    def catch_up(self) -> list[Any]:
        """Results of all rows that are final, as streams have come so far."""
        return self._given(max(self._final(), self._before))

    def flush(self) -> list[Any]:
        """All results that are still to come, now that no row will."""
        found = self._given(FOREVER)
        if self.outer is not None:
            self.outer.settle(at_end=True)
        return found

    def _given(self, before: int) -> list[Any]:
        found = self._joined(before)
        self._before = before
        self._found += len(found[0])
        given = self._scored(found)
        if self.outer is not None:
            given = self.outer.look_at(given)
        self._expire()
        if self.outer is not None:
            self.outer.settle()
        return given

    # -- from elsewhere ------------------------------------------------------------------------

    def load(self, stream: int, rows: Rows, arrivals: I64 | None = None) -> None:
        """Keep rows; which of them wait is said by `loaded`."""
        self.store(stream, rows, rows.usable, arrivals)

    def _waiting_rows(self, stream: int) -> tuple[I64, I64]:
        """Of usable rows that are here, times and numbers of those that have not been joined."""
        window = self.windows[stream]
        rows = np.arange(window.head, window.tail)
        time = window.times(rows)
        waits = (time >= self._before) & (time != LONG_AGO)
        time, rows = time[waits], rows[waits]
        order = time_order(np.ascontiguousarray(time))
        return time[order], rows[order]

    @property
    def given_before(self) -> int:
        """Rows with an earlier time have been joined."""
        return self._before

    def listen(self, outer: Outer) -> None:
        """Let somebody look at results."""
        self.outer = outer

    # -- looking -------------------------------------------------------------------------------

    @property
    def results(self) -> int:
        """Results so far."""
        if self.outer is None:
            return self._found
        return self.outer.given + (self._found if self.outer.kept.form == "pairs" else 0)

    def first_needed(self, stream: int) -> int:
        """The first row of a stream that results to come may have."""
        return self.windows[stream].head

    def begin(self) -> None:
        """Nothing runs beside the caller."""

    def close(self) -> None:
        """Nothing runs beside the caller."""
