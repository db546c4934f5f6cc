"""Rows of kept streams that are in no result: outer, semi and anti joins.

A row is in no result for good as soon as no row to come can meet it.  That is when it may be
forgotten, so the horizons of the windows say when rows come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from windjoin.kernels.spec import I64, Bools, Kept, Rows
from windjoin.kernels.window import LONG_AGO, Window
from windjoin.pyx.base.output import Output
from windjoin.pyx.live.unmatched import Unmatched

NONE = -1  # instead of a row number
Left = list[tuple[int, I64]]  # rows that are in no result, by the number of their stream


@dataclass
class Lonely:
    """Of whole tables, what comes out beside results, or instead of them.

    together: rows in no result go behind the results; else they stay apart, in ``left``
    """

    kept: Kept
    together: bool = False
    left: Left = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)  # rows in no result, by stream
    members: I64 | None = None  # rows that are in a result, if nothing else is asked for

    def look_at(self, stream: int, rows: Rows, matched: Bools) -> None:
        """It is known which rows of a stream are in a result."""
        if self.kept.form == "matched":
            self.members = np.flatnonzero(matched)
            return
        alone = unmatched_rows(rows, matched)
        self.left.append((stream, alone))
        self.counts[stream] = len(alone)

    @property
    def unasked(self) -> bool:
        """Whether nobody has told yet which rows are in a result."""
        return self.members is None and not self.counts

    def add_to(self, output: Output) -> None:
        """Rows in no result go behind the results."""
        if self.kept.form != "pairs":
            return
        for stream, rows in self.left:
            none = np.full(len(rows), NONE)
            output.extend([rows if s == stream else none for s in range(output.n_columns)])
        self.left = []


def unmatched_rows(rows: Rows, matched: Bools) -> I64:
    """Rows of a whole table that are in no result, though they are rows of the stream."""
    alone = ~matched
    return np.flatnonzero(alone if rows.present is None else alone & rows.present)


class Outer:
    """What of a live join comes out beside, or instead of, its results."""

    def __init__(self, kept: Kept, windows: Sequence[Window]) -> None:
        self.kept = kept
        self._windows = windows
        self._all_tracked = {stream: Unmatched() for stream in kept.streams}
        self._left: Left = []
        self._deferred = {stream: np.empty(0, np.int64) for stream in kept.streams}
        self.counts = dict.fromkeys(kept.streams, 0)  # rows that came out
        self.matched = 0  # rows that came out because they are in a result

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(tracked.nbytes for tracked in self._all_tracked.values())

    def admit(self, stream: int, rows: Rows, late: Bools | None, usable: Bools | None) -> None:
        """Rows arrive; those that match nothing, whatever comes, are final.

        usable: those that can be part of a result, None: all
        """
        tracked = self._all_tracked.get(stream)
        if tracked is None:
            return
        first = tracked.tail
        tracked.admit(np.ascontiguousarray(rows.time), usable)
        if rows.usable is None:
            return
        alone = ~rows.usable  # for want of an operand
        for mask in (rows.present, None if late is None else ~late):
            alone = alone if mask is None else alone & mask
        self.give(stream, first + np.flatnonzero(alone))

    def look_at(self, found: list[Any]) -> list[Any]:
        """What comes out for new results."""
        if self.kept.form == "pairs":
            for stream, tracked in self._all_tracked.items():
                tracked.mark(found[stream])
                self._no_more_deferred(stream, found[stream])
            return found
        (stream,) = self.kept.streams
        new = self._all_tracked[stream].mark_new(found[stream])
        before = self._no_more_deferred(stream, found[stream])
        new = np.concatenate([before, new]) if len(before) else new
        if self.kept.form == "unmatched":
            new = new[:0]
        self.matched += len(new)
        none = np.full(len(new), -1)
        return [new if s == stream else none for s in range(len(self._windows))]

    def _no_more_deferred(self, stream: int, rows: I64) -> I64:
        """Those of some rows that were deferred."""
        deferred = self._deferred[stream]
        if not len(deferred):
            return deferred
        come = np.isin(deferred, rows)
        self._deferred[stream] = deferred[~come]
        return deferred[come]

    def settle(self, waiting: Sequence[I64] = (), *, at_end: bool = False) -> None:
        """Rows that nothing to come can meet come out.

        waiting: by stream, rows of results that may or may not come out yet
        """
        for stream, tracked in self._all_tracked.items():
            window = self._windows[stream]
            rows = tracked.before(window.rings[0], window.extent.horizon, at_end)
            if len(waiting):
                rows = np.concatenate([self._deferred[stream], rows])
                waits = np.isin(rows, waiting[stream])
                self._deferred[stream], rows = rows[waits], rows[~waits]
            if len(rows):
                self.give(stream, rows)

    def tracked(self, stream: int) -> Unmatched | None:
        """What knows which rows of a stream are in no result; None: they do not come out."""
        return self._all_tracked.get(stream)

    def give(self, stream: int, rows: I64) -> None:
        """Rows of a stream come out, as they are in no result for good."""
        if self.kept.form == "matched" or not len(rows):
            return
        self.counts[stream] += len(rows)
        self._left.append((stream, rows))

    def state(self, stream: int) -> tuple[dict[str, int], I64, I64]:
        """For `resume`: numbers, rows in results that are not decided, and rows that wait."""
        tracked = self._all_tracked[stream]
        rows = np.arange(tracked.first, tracked.tail)
        known = {"first": tracked.first, "passed": tracked.passed, "came": self.counts[stream]}
        return known, rows[tracked.has(rows)], self._deferred[stream]

    def resume(self, stream: int, known: dict[str, int], matched: I64, deferred: I64) -> None:
        """Go on where another left off; the rows are there."""
        tracked, window = self._all_tracked[stream], self._windows[stream]
        first = known["first"]
        tracked.begin_at(first, known["passed"])
        times = window.rings[0].get(first, window.tail - first)
        tracked.admit(times, times != LONG_AGO)
        tracked.mark(matched)
        self._deferred[stream] = deferred
        self.counts[stream] = known["came"]

    def take(self) -> Left:
        """What has come out since this was last asked."""
        left, self._left = self._left, []
        return left

    @property
    def any_left(self) -> bool:
        """Whether anything has."""
        return bool(self._left)

    @property
    def given(self) -> int:
        """Rows that came out so far, beside pairs."""
        return self.matched + sum(self.counts.values())
