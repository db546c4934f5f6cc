"""What routers share whose segment length follows the throughput."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.load import Host, Usage, Weights
from windjoin.diffusion.router import Router
from windjoin.diffusion.segment_length import HillClimber
from windjoin.diffusion.segments import StreamProfile


class AdaptiveRouter(Router):
    """With ``adapt``, measurements change the segment length and whatever `_follow` says."""

    def __init__(
        self,
        profiles: Sequence[StreamProfile],
        hosts: Sequence[Host],
        *,
        segment_length: int,
        weights: Weights | None,
        adapt: bool,
    ) -> None:
        super().__init__(profiles, hosts, segment_length=segment_length, weights=weights)
        self.adapt = adapt
        self.fixed_length = False  # the length was asked for
        # rows, and results, stay until a segment ends: windows are to bound that, too
        self._climber = HillClimber.around(segment_length, self.max_window)

    def change_length(self, length: int) -> None:
        """Segments that nothing was decided about yet get this length."""
        if length < 1:
            raise RoutingError(f"segment_length is {length}; it must be at least 1")
        self.counters.switches += length != self.segment_length
        self.segment_length = length
        self.book.spread(length)

    def _measured(
        self,
        loads: Mapping[int, Usage],
        rates: Sequence[float] | None,
        throughput: float | None,
    ) -> None:
        """With ``adapt``, follow them."""
        if not self.adapt:
            return
        self._follow(rates)
        if throughput is not None and not self.fixed_length:
            if self._climber.ready is None:  # rows meet fewer others while windows fill
                self._climber.wait_until(self.border + self.max_window)
            length = self._climber.observe(throughput, self.border)
            if length != self.segment_length:
                self.change_length(length)
                self._climber.wait_until(self._planned_until() + self.max_window)

    def _planned_until(self) -> int:
        """Segments that start before this time have the length they were planned with."""
        return self.border

    @abstractmethod
    def _follow(self, rates: Sequence[float] | None) -> None:
        """Rates and loads were measured."""
