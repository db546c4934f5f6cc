"""Windows that change while a session runs, exactly at a time that was named.

A result of time T (that of its newest row) is judged by the windows of T.  Windows begin where
they began: of a window that becomes longer at ``at``, what had left it by then does not come back,
so at T it reaches back to ``max(T - new, at - old)``.  Meanwhile the join keeps the longer of the
windows, and what the shorter one would not have let through is taken out of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from windjoin.clustered import ClusterJoin
from windjoin.errors import QueryError, SessionError
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.spec import I64
from windjoin.kernels.window import LONG_AGO
from windjoin.times import clock_of, window_ticks

if TYPE_CHECKING:
    from windjoin.binding import BoundQuery
    from windjoin.kernels.intake import Intake
    from windjoin.query import Query
from windjoin.row_windows import RowWindow


@dataclass(frozen=True, slots=True)
class WindowChange:
    """From time ``at`` on the window of a stream is ``new`` ticks long, before it was ``old``."""

    stream: int
    at: int
    old: int
    new: int


class Resizing:
    """The changes of a session that results to come may still be concerned by."""

    def __init__(self, live: LiveJoin | ClusterJoin) -> None:
        self._live = live
        self.changes: list[WindowChange] = []
        self._now = [stream.window for stream in live.spec.streams]
        self.dropped = 0  # results that were none

    def length(self, stream: int) -> int:
        """The window that results to come in the end have, in ticks."""
        return self._now[stream]

    def check(self, name: str, stream: int, given: Any, at: int) -> None:
        """Refuse a time that results may have come to already."""
        clocks = self._live.clocks
        newest = max(clock.newest for clock in clocks)
        if at <= newest:
            raise QueryError(
                f"set_window({name!r}, at={given!r}): rows of that time or later have come, and"
                " their results may have left; give a later time"
            )
        if at < self.last_change(stream):
            raise QueryError(
                f"set_window({name!r}, at={given!r}): a change at a later time was asked for"
                " before; give its time or a later one"
            )

    def add(self, stream: int, at: int, new: int) -> None:
        """A window changes at a time that no row has come to."""
        self.changes.append(WindowChange(stream, at, self._now[stream], new))
        self._now[stream] = new
        self._fit()

    def settle(self) -> bool:
        """Forget changes that are over; whether any is left."""
        if not self.changes:
            return False
        earliest = self._earliest()
        left = [change for change in self.changes if not self._over(change, earliest)]
        over = {change.stream for change in self.changes} - {change.stream for change in left}
        # of a stream all or none: later changes know of earlier ones
        kept = [change for change in self.changes if change.stream not in over]
        if len(kept) < len(self.changes):
            self.changes = kept
            self._fit()
        return bool(kept)

    def _over(self, change: WindowChange, earliest: int) -> bool:
        """Whether no result to come, of time ``earliest`` or later, knows of what was before."""
        mine = [one for one in self.changes if one.stream == change.stream]
        return earliest >= change.at and earliest - change.new >= _start_at(mine, change)

    def last_change(self, stream: int) -> int:
        """When the window of a stream changes for the last time, as far as is known."""
        return max((c.at for c in self.changes if c.stream == stream), default=LONG_AGO)

    def only_results(self, found: list[Any]) -> list[Any]:
        """Without those that a window of their time does not let through."""
        if not self.changes or not len(found[0]):
            return found
        windows = self._live.windows
        times = [
            side.times(rows) for side, rows in zip(windows, found[: len(windows)], strict=True)
        ]
        latest = np.maximum.reduce(times)
        kept = np.ones(len(latest), np.bool_)
        for stream in {change.stream for change in self.changes}:
            mine = [change for change in self.changes if change.stream == stream]
            kept &= times[stream] >= reaches(mine, latest)
        self.dropped += int(len(kept) - kept.sum())
        return [column[kept] for column in found]

    def _fit(self) -> None:
        """Let the join keep the longest window that any result to come may ask for."""
        for stream, now in enumerate(self._now):
            every = [c.old for c in self.changes if c.stream == stream]
            longest = max([now, *every, *(c.new for c in self.changes if c.stream == stream)])
            if longest != self._live.spec.streams[stream].window:
                self._live.resize(stream, longest)
        self._live.sift(self.only_results if self.changes else None)

    def _earliest(self) -> int:
        """No result to come is of an earlier time."""
        if isinstance(self._live, ClusterJoin):
            return self._live.given_before
        return min(clock.watermark for clock in self._live.clocks)


def change_of(
    live: Intake | None,
    bound: BoundQuery | None,
    query: Query,
    stream: int,
    length: Any,
    at: Any,
) -> tuple[LiveJoin | ClusterJoin, int, int]:
    """The join whose window changes, its new length and the time, in ticks."""
    if live is None or bound is None:
        raise SessionError("set_window needs the schemas of all streams; open with schemas=")
    plain = query.sides.plain and query.nearest is None
    one = query.streams[stream].with_window(length)
    plain &= not isinstance(one.window, RowWindow)
    if not isinstance(live, (LiveJoin, ClusterJoin)) or not plain:
        raise SessionError(
            "set_window is for inner joins without nearest=, and for windows of time"
        )
    clock_of([one], bound.schemas)  # refuses a length that does not go with its times
    ticks = window_ticks(one, bound.clock, query.closed)
    if at is not None:
        return live, ticks, bound.promise(stream, at)
    return live, ticks, max(clock.newest for clock in live.clocks) + 1


def reaches(changes: Sequence[WindowChange], times: I64) -> I64:
    """How far back the window of a stream reaches at each of some times; changes in their order."""
    low = _before(times, changes[0].old)
    for change in changes:
        floor = _start_at(changes, change)
        low = np.where(times >= change.at, np.maximum(_before(times, change.new), floor), low)
    return low


def _start_at(changes: Sequence[WindowChange], change: WindowChange) -> int:
    """Where the window began just when it changed."""
    low = change.at - changes[0].old
    for earlier in changes:
        if earlier is change:
            break
        floor = _start_at(changes, earlier)
        low = max(change.at - earlier.new, floor)
    return max(low, LONG_AGO)


def _before(times: I64, window: int) -> I64:
    """``times - window``, or the least time where that is less."""
    return np.where(times < LONG_AGO + window, LONG_AGO, times - np.int64(window))
