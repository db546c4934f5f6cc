"""A live join that sheds load when it must: its pipelines ask for what is worth it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windjoin.kernels.hops import BLOCK_ROWS, pipeline
from windjoin.kernels.intake import LateSplit, Silencing
from windjoin.kernels.live import Giver, LiveJoin
from windjoin.kernels.order import Order, OrderHop
from windjoin.kernels.shedding.control import Controller, Settings
from windjoin.kernels.side import Side
from windjoin.kernels.spec import F64, I64, Bools, JoinSpec, Rows
from windjoin.pyx.base.index import Index
from windjoin.pyx.base.output import Runner
from windjoin.pyx.live.limited import Limited
from windjoin.pyx.live.shedder import Beat, Shedder
from windjoin.pyx.probing.pipeline import Pipeline

Value = Callable[[list[I64]], F64]  # what results are worth, by their rows of every stream


class SheddingJoin(LiveJoin):
    """A `LiveJoin` whose start rows go through a `Shedder` each."""

    def __init__(
        self,
        spec: JoinSpec,
        settings: Settings,
        beat: Beat,
        lateness: int = 0,
        silence: Silencing | None = None,
        value: Value | None = None,
    ) -> None:
        self.beat = beat
        self.control = Controller(spec, settings, beat)
        self._value = value
        self._hops: list[list[Limited]] = []
        self._compared = 0
        super().__init__(spec, lateness, silence=silence)

    def _follow(self, orders: list[Order]) -> None:
        self.control.spec = self.spec  # windows may have got other lengths
        self._hops = [[] for _ in orders]
        self._shedders: list[Shedder] = []
        super()._follow(orders)
        self.control.follow(orders, self._shedders)

    def _pipeline(self, order: Order) -> Pipeline:
        hops = self._hops[order.start]

        def limited(step: OrderHop, side: Side, index: Index) -> Index:
            windows = self.control.windows(order.start, step.stream)
            start = self.windows[order.start]
            before = (hops[-1], self.windows[hops[-1].target].time_view) if hops else None
            hops.append(
                Limited(
                    index, order.start, start.time_view, step.stream, side.time_view, BLOCK_ROWS,
                    windows.width, windows.first, windows.count, before,
                    self.windows[step.stream].extent if step.access.looks_at_rows else None,
                )
            )  # fmt: skip
            return hops[-1]

        return pipeline(self.spec, order, self.windows, limited=limited)

    def _runner(self, number: int, made: Pipeline) -> Runner:
        """What a feed gives its rows to."""
        seed = self.control.settings.seed
        view = self.windows[number].time_view
        shedder = Shedder(made, self.beat, number, view, self._hops[number], seed)
        shedder.value = self._value
        self._shedders.append(shedder)
        return shedder

    # -- rows that are dropped -------------------------------------------------------------------

    def push(self, stream: int, rows: Rows, late_split: LateSplit) -> list[Any]:
        """Join newly arrived rows, or those of them that are not dropped."""
        if self.control.admission.share < 1:
            return self._push_any(stream, rows, late_split)
        return super().push(stream, rows, late_split)

    def usable(self, stream: int, rows: Rows, late_split: LateSplit) -> Bools | None:
        """Rows that can be part of a result, and are taken."""
        usable = super().usable(stream, rows, late_split)
        first = self.windows[stream].tail
        return self.control.admission.choose(stream, first, len(rows), usable)

    def attend(self) -> None:
        """Between two pushes: drop another share of the rows, by the way that can."""
        admission, windows = self.control.admission, self.windows
        admission.expire([window.head for window in windows])
        admission.take(self.control.admits, [window.tail for window in windows])
        if admission.drops:
            self._compared = self.comparisons
            self.beat.to_attend = True  # until it is over
        for joiner in self.joiners:
            joiner.give = self._giver()

    def _giver(self) -> Giver | None:
        return self._weighed if self.control.admission.drops else super()._giver()

    def _weighed(self, found: list[I64]) -> list[Any]:
        """Results, and what is missed beside them because rows were dropped."""
        compared, self._compared = self._compared, self.comparisons
        self.control.admission.weigh(found, self._compared - compared)
        give = super()._giver()
        return list(found) if give is None else give(found)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for windows, indexes, keys and the blocks of the hops."""
        return super().nbytes + sum(one.nbytes for hops in self._hops for one in hops)

    def report(self) -> dict[str, Any] | None:
        """What hosts did: there are none."""
        return None
