"""Hosts of one process that shed load, each by its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from windjoin.errors import QueryError
from windjoin.kernels.shedding.control import Controller, Settings
from windjoin.kernels.shedding.hosted import SheddingHostJoin
from windjoin.kernels.shedding.live import Value
from windjoin.kernels.spec import JoinSpec
from windjoin.kernels.statistics import Statistics
from windjoin.kernels.window import Window
from windjoin.pyx.live.shedder import Beat
from windjoin.query import Query

TRAVELLING = ("ctr", "ctr-random", "psp")  # partial results of three streams go from host to host
SEED_OF_HOST = 1_000_003


def one_hop(query: Query, strategy: str) -> str:
    """The strategy, if a host finds results on its own; `QueryError` if it cannot.

    What a partial result that was left out would have become on other hosts is not known to any.
    """
    if len(query.streams) == 2:
        return strategy
    if strategy in TRAVELLING:
        raise QueryError(
            f"shed= with strategy={strategy!r}: partial results of {len(query.streams)} streams"
            ' travel between hosts, and none knows what is missed; take "atr" or "groups"'
        )
    return "atr" if strategy == "auto" else strategy


class SheddingHosts:
    """What each host knows of its load, and keeps if its operator is made anew."""

    def __init__(
        self, settings: Settings, new_beat: Callable[[], Beat], value: Value | None
    ) -> None:
        self.settings, self.controls = settings, dict[int, Controller]()
        self._new_beat, self._value = new_beat, value
        self._told = False

    def operator(
        self,
        number: int,
        spec: JoinSpec,
        windows: Sequence[Window],
        statistics: Statistics,
        raised: threading.Event,
    ) -> SheddingHostJoin:
        """What works on a host."""
        if number not in self.controls:
            settings = replace(self.settings, seed=self.settings.seed + SEED_OF_HOST * number)
            self.controls[number] = Controller(spec, settings, self._new_beat(), latest=True)
        control = self.controls[number]
        seed = control.settings.seed
        return SheddingHostJoin(spec, windows, statistics, raised, control, seed, self._value)

    @property
    def begun(self) -> Controller | None:
        """The first host that sheds, once."""
        found = [one for one in list(self.controls.values()) if one.beat.to_tell]
        if self._told or not found:
            return None
        self._told = True
        return found[0]
