"""What becomes of rows that come too late: kept apart without a word, told of once, or refused."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from windjoin.errors import LateRowError, LateRowWarning, QueryError, warn
from windjoin.kernels.intake import LateSplit
from windjoin.kernels.spec import I64
from windjoin.kinds import INT64_MAX
from windjoin.pyx.live.store import Watermark
from windjoin.times import TimeColumn, TimeUnit
from windjoin.watermarks import length_text, time_text

OnLate = Literal["keep", "warn", "raise"]


class LateRows:
    """Tells of late rows before they are taken; so an error leaves all as it was."""

    def __init__(self, on_late: OnLate, lateness: Any) -> None:
        if on_late not in ("keep", "warn", "raise"):
            raise QueryError(f'on_late={on_late!r}: give on_late="keep", "warn" or "raise"')
        self._on_late = on_late
        self._lateness = lateness  # as the user gave it
        self.told: set[str] = set()  # streams

    def tell(
        self,
        column: TimeColumn,
        clock: TimeUnit,
        marks: Watermark,
        times: I64,
        late_split: LateSplit,
    ) -> None:
        """Say what ``on_late`` asks for about rows of which some were judged to be late."""
        stream = column.stream
        if late_split.late is None or self._on_late == "keep" or stream in self.told:
            return
        row = int(late_split.late.argmax())
        time = int(times[row])
        told = (
            f"stream {stream!r}, row {row} of the push: its time {time_text(column, time)} is"
            f" before the stream's watermark {time_text(column, late_split.watermark)},"
            " so it is late;"
            f" {self._why(clock, marks, time, late_split.watermark)}"
        )
        if self._on_late == "raise":
            raise LateRowError(
                f"{told}. Nothing of the push was taken: push it again without its late rows,"
                " which are those in this error's `rows`",
                stream,
                np.flatnonzero(late_split.late).tolist(),
            )
        self.told.add(stream)
        warn(
            f"{told}. Late rows are kept in `rejected` and not joined; this is said once for each"
            ' stream, with on_late="keep" not at all',
            LateRowWarning,
        )

    def _why(self, clock: TimeUnit, marks: Watermark, time: int, watermark: int) -> str:
        """Who said that no such row would come, or what would have kept it."""
        if marks.promised == INT64_MAX:
            return "`finish` had said that no more rows of this stream would come"
        if time < marks.promised == marks.silenced:
            return (
                "the stream had been silent for longer than its idle=, so nothing before that was"
                " waited for; a longer idle= would have kept it"
            )
        if time < marks.promised:
            return "`advance` had promised that no such row would come"
        enough = length_text(watermark + marks.lateness - time, clock, self._lateness)
        return f"lateness={enough} or more would have kept it"
