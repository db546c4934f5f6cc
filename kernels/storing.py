"""Joins of live streams that store rows as they come, and join them later."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from windjoin.kernels.intake import Intake, LateSplit, Silencing
from windjoin.kernels.spec import I64, Bools, JoinSpec, Rows
from windjoin.pyx.base.column import time_order
from windjoin.pyx.live.stream_storer import StreamStorer


class StoringJoin(Intake):
    """What such joins have in common; a subclass joins rows when it says."""

    added = 0  # columns that the join adds to those that rows have: times, then bounds of them

    def __init__(self, spec: JoinSpec, lateness: int = 0, silence: Silencing | None = None) -> None:
        super().__init__(spec, lateness, silence)
        self._follow_windows()

    @abstractmethod
    def stored(self, stream: int, time: I64, numbers: I64, first: int, count: int) -> list[Any]:
        """Rows have been stored; the results that are complete now.

        time, numbers: of those that are to be joined, in order of time; all: ``count`` rows from
        number ``first`` on
        """

    def _follow_windows(self) -> None:
        """Store rows in the windows, and in their indexes, as they are now."""
        self._stores = self.new_stores()
        self.joiners[:] = [
            StreamStorer(stream, self._stores, self.clocks, self.stored, self.silence, self.added)
            for stream in range(len(self._stores))
        ]

    def resized(self) -> None:
        """The specs of the windows were changed."""
        super().resized()
        self._follow_windows()

    def push(self, stream: int, rows: Rows, late_split: LateSplit) -> list[Any]:
        """Keep newly arrived rows; all results that are complete then."""
        usable = self._receive(stream, rows, late_split)
        first, count = self.windows[stream].tail, len(rows)
        joined = self._joined_of(stream, rows, usable, late_split)
        time, numbers = self._add(stream, rows, usable, joined, late_split.ordered)
        return self.stored(stream, time, numbers, first, count)

    def _joined_of(
        self, stream: int, rows: Rows, usable: Bools | None, late_split: LateSplit
    ) -> Bools | None:
        """Which of some rows are to be joined, None: all."""
        return usable

    def _extended(self, rows: Rows) -> Rows:
        """Rows with the columns that the join adds to them."""
        return rows

    def _receive(self, stream: int, rows: Rows, late_split: LateSplit) -> Bools | None:
        """Rows have come that are joined later: clocks and counts know; which are usable."""
        self.clocks[stream].newest = late_split.newest
        if self.silence is not None:
            self.silence.heard(stream if len(rows) else -1)
        self.counts[stream].rows_in += len(rows)
        usable = self.usable(stream, rows, late_split)
        if self.outer is not None:
            self.outer.admit(stream, rows, late_split.late, usable)
        return usable

    def _add(
        self,
        stream: int,
        rows: Rows,
        usable: Bools | None,
        joined: Bools | None,
        ordered: bool,
        arrivals: I64 | None = None,
    ) -> tuple[I64, I64]:
        """Keep rows; times and numbers of those that are to be joined, in order of time."""
        _, numbers = self.store(stream, self._extended(rows), usable, arrivals)
        time = rows.time
        if joined is not None:
            time, numbers = time[joined], numbers[joined]
        if not ordered:
            order = time_order(np.ascontiguousarray(time))
            time, numbers = time[order], numbers[order]
        return time, numbers
