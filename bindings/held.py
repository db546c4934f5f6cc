"""Rows that a stream holds because another is behind: how many, for whom, and when to tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windjoin.binding import BoundQuery
from windjoin.errors import HeldBackWarning, warn
from windjoin.kernels.intake import Intake
from windjoin.kernels.window import LONG_AGO
from windjoin.kinds import INT64_MAX
from windjoin.watermarks import time_text

MANY_ROWS = 1_000_000
MANY_BYTES = 64 << 20
TIMES = 4  # as many rows as lie in the window of their stream
FIRST_LOOK = 1 << 12  # rows that a stream holds, and then whenever they have doubled
NOTHING = {"lag": None, "held_by": None, "held_rows": 0, "held_bytes": 0}
REMEDY = 'give it an idle= (such as idle="30s", on stream or open), or advance it'


class HeldRows:
    """How far streams are apart, and what that costs; tells once of each that holds very much.

    stream_inputs: of the session.  They are closed while something is to be told, so that the next
    push comes by where it can be: before any of its rows is taken.
    """

    def __init__(
        self,
        bound: BoundQuery,
        live: Intake,
        stream_inputs: dict[str, Any],
        nbytes: Callable[[int], int],
    ) -> None:
        self._bound = bound
        self._windows, self._clocks = live.windows, live.clocks
        self._nbytes = nbytes
        self._stream_inputs = stream_inputs
        self._closed: dict[str, Any] = {}
        self._look_at = [FIRST_LOOK] * len(live.windows)
        self._told: set[int] = set()
        self.due: list[int] = []  # streams to be told of

    def gauge(self, number: int) -> dict[str, Any]:
        """For ``metrics``: how far behind a stream is, and what it holds for whom."""
        names, marks = self._bound.query.names, self._marks
        behind = self._furthest(marks) - marks[number]
        rows, by = self._beyond(number), self._last_but(number)
        if rows == 0 or marks[by] >= marks[number]:
            return {**NOTHING, "lag": self._length(number, behind)}
        share = rows / len(self._windows[number])
        return {
            "lag": self._length(number, behind),
            "held_by": names[by],
            "held_rows": rows,
            "held_bytes": round(share * self._nbytes(number)),
        }

    def check(self) -> None:
        """See whether there is something to tell; costs nothing where windows do not grow."""
        for number, window in enumerate(self._windows):
            if len(window) < self._look_at[number] or number in self._told:
                continue
            self._look_at[number] = 2 * len(window)
            held = self.gauge(number)
            within = len(window) - held["held_rows"]
            much = held["held_rows"] > MANY_ROWS or held["held_bytes"] > MANY_BYTES
            if much and len(window) > TIMES * within:
                self._told.add(number)
                self.due.append(number)
        if self.due:
            self._closed.update(self._stream_inputs)
            self._stream_inputs.clear()

    def tell(self) -> None:
        """Tell what is due; nothing has been taken of the push that comes by."""
        self._stream_inputs.update(self._closed)
        self._closed = {}
        while self.due:
            number = self.due.pop()
            held = self.gauge(number)
            if held["held_by"] is not None:
                warn(self._told_of(number, held), HeldBackWarning)

    def _told_of(self, number: int, held: dict[str, Any]) -> str:
        names, by = self._bound.query.names, self._last_but(number)
        mark = self._marks[by]
        reached = f"has come no further than {time_text(self._bound.time_column(by), mark)}"
        if mark == LONG_AGO:
            reached = "has not begun"
        return (
            f"stream {names[number]!r} holds {held['held_rows']:,} rows"
            f" ({held['held_bytes'] / 1e6:,.0f} MB) that are older than its window, because stream"
            f" {names[by]!r} {reached}; {REMEDY}"
        )

    @property
    def _marks(self) -> list[int]:
        return [clock.watermark for clock in self._clocks]

    @staticmethod
    def _furthest(marks: list[int]) -> int:
        """Of the streams that have not ended."""
        return max((mark for mark in marks if mark != INT64_MAX), default=LONG_AGO)

    def _last_but(self, number: int) -> int:
        """The stream that has come least far, of the others."""
        marks = self._marks
        return min((k for k in range(len(marks)) if k != number), key=marks.__getitem__)

    def _beyond(self, number: int) -> int:
        """Rows that would be gone if all streams had come as far as their own."""
        window, mark = self._windows[number], self._clocks[number].watermark
        if mark in (LONG_AGO, INT64_MAX):
            return 0
        return window.before(max(mark - window.spec.window, LONG_AGO))

    def _length(self, number: int, ticks: int) -> float | int | None:
        """Seconds; ticks where times are plain integers; None before the stream has begun."""
        if self._marks[number] == LONG_AGO:
            return None
        step = self._bound.clock.step
        ticks = max(ticks, 0)
        return ticks if step is None else float(ticks * step)
