"""As-of joins of live streams: a row is joined once no nearer partner of it can come.

Rows of the first stream wait until then, in order of time; those of the second are indexed as they
come.  So a row is joined once, with what is there then.
"""

from __future__ import annotations

from typing import Any

from windjoin.kernels.asof import live_order, nearest_in_time
from windjoin.kernels.final import FOREVER, LAST, FinalJoin, TimeQueue, come_to
from windjoin.kernels.hops import pipeline
from windjoin.kernels.intake import Silencing
from windjoin.kernels.order import Order
from windjoin.kernels.spec import I64, JoinSpec
from windjoin.kernels.window import LONG_AGO
from windjoin.pyx.base.output import Output
from windjoin.pyx.probing.pipeline import Pipeline


class AsofJoin(FinalJoin):
    """State of one continuous as-of join; not for two threads at a time."""

    def __init__(self, spec: JoinSpec, lateness: int = 0, silence: Silencing | None = None) -> None:
        super().__init__(spec, lateness, silence)
        assert spec.nearest is not None
        self._nearest = spec.nearest
        self._pending = TimeQueue()
        self._done = (0, 0)  # by pipelines that are gone
        # a row that comes that much later than another can still be the nearest to it
        self._ahead = 0 if spec.nearest.direction == "backward" else spec.streams[0].window
        self._order = live_order(spec)
        self._follow()

    def _follow(self) -> None:
        """Index the rows of the second stream."""
        for step in self._order.steps:
            self.windows[step.stream].serve(step.access)
        self._follow_windows()
        self._pipeline = pipeline(self.spec, self._order, self.windows)

    def _final(self) -> int:
        mark = come_to(self.clocks[1])
        return mark if mark in (LONG_AGO, FOREVER) else max(mark - self._ahead, LONG_AGO)

    def _came(self, stream: int, time: I64, numbers: I64) -> None:
        if stream == 0:
            self._pending.add(time, numbers)
        elif len(numbers):
            self.windows[1].insert(self.windows[1].stored(numbers))

    def _joined(self, before: int) -> list[I64]:
        _, rows = self._pending.before(before)
        if not len(rows):
            return self._none()
        output = Output(2)
        self._pipeline.run_partials([rows], output)
        left, right = output.finish()
        times = self.windows[0].times(left), self.windows[1].times(right)
        return list(nearest_in_time(self._nearest, (left, right), times))

    def _expire(self) -> None:
        """Forget rows that have been joined, and partners of none that waits or may come."""
        least = min(self._before, self.clocks[0].watermark)
        if self._before != LONG_AGO:
            self._stores[0].expire(min(self._before, LAST))
        if least != LONG_AGO:
            self._stores[1].expire(max(least - self.spec.streams[1].window, LONG_AGO))

    def loaded(self, given_before: int) -> list[Any]:
        """Index all rows of the second stream; let those wait that have not been joined."""
        self._before = given_before
        self._pending = TimeQueue()
        self._pending.add(*self._waiting_rows(0))
        self._done = self.done_by(0)
        self.windows[1].keep(())
        self._follow()
        return self._scored(self._none())

    def resume(self, results: int, done: list[tuple[int, int]]) -> None:
        """Go on counting where another left off."""
        self._found, self._done = results, done[0]

    def _renew(self) -> None:
        self._done = self.done_by(0)
        self.windows[1].keep(())
        self._renumber({})
        self._follow()

    # -- looking -------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows, indexes, keys and rows that wait."""
        return super().nbytes + self._pending.nbytes + self._pipeline.nbytes

    @property
    def comparisons(self) -> int:
        """Candidates looked at so far."""
        return self.done_by(0)[1]

    def done_by(self, stream: int) -> tuple[int, int]:
        """Results of rows of a stream, and candidates looked at for that."""
        if stream:
            return 0, 0
        hops = self._pipeline.measured()
        return self._found, self._done[1] + sum(hop["proposed"] for hop in hops)

    def plans(self) -> list[tuple[Order, Pipeline]]:
        """How rows of the first stream find their partners."""
        return [(self._order, self._pipeline)]

    def structures(self, order: Order) -> list[set[str]]:
        """What the index is."""
        indexes = (self.windows[step.stream].indexes[step.access.identity] for step in order.steps)
        return [{type(index).__name__} for index in indexes]
