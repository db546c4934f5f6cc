"""What one host of several does where each sheds by its own load."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from windjoin.kernels.hops import BLOCK_ROWS
from windjoin.kernels.hosted import HostJoin, IndexLimits, Stretches, Way
from windjoin.kernels.order import Order, OrderHop
from windjoin.kernels.shedding.control import Controller
from windjoin.kernels.shedding.live import Value
from windjoin.kernels.side import Side
from windjoin.kernels.spec import I64, JoinSpec
from windjoin.kernels.statistics import Statistics
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.base.output import Output
from windjoin.pyx.live.limited import Limited
from windjoin.pyx.live.shedder import Shedder
from windjoin.pyx.probing.pipeline import Pipeline


class SheddingHostJoin(HostJoin):
    """A `HostJoin` whose start rows go through a `Shedder` for each way that they come.

    Rows that are joined fully are drawn on every host anew, so what hosts tell adds up.
    """

    def __init__(
        self,
        spec: JoinSpec,
        windows: Sequence[Window],
        statistics: Statistics,
        raised: threading.Event,
        control: Controller,
        seed: int,
        value: Value | None,
    ) -> None:
        super().__init__(spec, windows, statistics, raised)
        self.control, self._seed, self._value = control, seed, value
        self._limits: dict[Way, list[Limited]] = {}
        self._shedders: dict[Way, Shedder] = {}
        control.spec = spec
        control.follow([], [])

    def store(self, stream: int, rows: I64) -> None:
        """Hold more rows, given in time order."""
        self.control.beat.begin()
        try:
            super().store(stream, rows)
        finally:
            self.control.beat.end()

    def hold(self, stream: int, rows: I64) -> None:
        """Hold these rows, in time order, and no others."""
        super().hold(stream, rows)
        self._shedders.clear()  # their pipelines are gone
        self.control.follow([], [])

    def extend(
        self,
        bound: tuple[int, ...],
        targets: tuple[int, ...],
        partials: Sequence[I64],
        voids: Mapping[int, Stretches],
        held: Callable[[int], I64],
    ) -> list[I64]:
        """Results of the rows, or those of them that are worth it."""
        self.control.beat.begin()
        try:
            return super().extend(bound, targets, partials, voids, held)
        finally:
            self.control.beat.end()

    def _limited(self, way: Way, order: Order) -> IndexLimits:
        hops: list[Limited] = []
        self._limits[way] = hops

        def limited(step: OrderHop, side: Side, index: Index) -> Index:
            windows = self.control.windows(order.start, step.stream)
            start = self.windows[order.start]
            before = (hops[-1], self.windows[hops[-1].target].time_view) if hops else None
            whole = self._whole[step.stream]
            hops.append(
                Limited(
                    index, order.start, start.time_view, step.stream, side.time_view, BLOCK_ROWS,
                    windows.width, windows.first, windows.count, before,
                    whole.extent if step.access.looks_at_rows else None,
                )
            )  # fmt: skip
            return hops[-1]

        return limited

    def _pipeline(self, way: Way, held: Callable[[int], I64]) -> Pipeline:
        made = super()._pipeline(way, held)
        start = way[0][0]
        view = self.windows[start].time_view
        shedder = Shedder(made, self.control.beat, start, view, self._limits[way], self._seed)
        shedder.value = self._value
        self._shedders[way] = shedder
        orders = [self._orders[one] for one in self._shedders]
        self.control.follow(orders, list(self._shedders.values()))
        return made

    def _run(self, way: Way, hops: Pipeline, partials: Sequence[I64], output: Output) -> None:
        self._shedders[way].join(partials[0], output)
