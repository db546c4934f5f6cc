"""Narrow bands through a grid of cells over the values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from windjoin.kernels.access import MOST_RANKS, Access, RowSource, Situation
from windjoin.kernels.comparison import other_side
from windjoin.kernels.ranges import as_ranges
from windjoin.kernels.side import Side, Table, sortable
from windjoin.kernels.spec import Between
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.indexes.live_grid import LiveBandGrid
from windjoin.pyx.indexes.static_grid import StaticBandGrid

PER_PROBE = 30.0  # nanoseconds: three cells
PER_CANDIDATE = 2.0
PROPOSED = 1.5  # rows in the cells per row in the band


@dataclass(frozen=True)
class Band(Access):
    """Rows of the target in the cells that the band around a bound value touches."""

    predicate: Between
    column: int
    width: float
    span: int  # of a usual window, from its begin to its end

    name: ClassVar[str] = "grid of cells"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Band]:
        if situation.statistics.rows[situation.target] > MOST_RANKS:
            return
        for p in situation.predicates:
            if not isinstance(p, Between):
                continue
            width = _cell_width(p)
            if width is None:
                continue
            candidates = PROPOSED * situation.window_rows * situation.statistics.share(p)
            cost = PER_PROBE + candidates * PER_CANDIDATE
            column = other_side(p, situation.target)[1].column
            span = _span(situation)
            yield cls(situation.target, (p,), candidates, cost, p, column, width, span)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column, self.width, self.span)

    def load(self, table: Table) -> Index:
        values = sortable(table.columns[self.column])
        return StaticBandGrid.load(
            values, table.time, self.width, self._real, self.span, table.first
        )

    def start(self, window: Window) -> Index:
        return LiveBandGrid(self.width, self._real)

    @property
    def _real(self) -> bool:
        return self.predicate.dtype == "float64"

    @property
    def source(self) -> RowSource:
        return "columns", (self.column,)

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        return {"ranges": as_ranges([[self.predicate]], self.target, sides)}


def _span(situation: Situation) -> int:
    """Time from the earliest to the latest row that can meet the rows bound so far."""
    windows = [situation.spec.streams[s].window for s in (situation.target, *situation.bound)]
    return min(windows[0] + max(windows[1:]), 2**62)


def _cell_width(predicate: Between) -> float | None:
    """Half the band, so that it touches three cells; None where a grid makes no sense."""
    length = float(predicate.high) - float(predicate.low)
    if not (0 <= length < 1e300 and math.isfinite(length)):
        return None
    if predicate.dtype == "int64":
        return max(math.ceil(length / 2), 1)
    # A band of length 0 asks for exact differences: any fine grid will do.
    scale = max(abs(float(predicate.low)), abs(float(predicate.high)), 1.0)
    return max(length / 2, scale * 1e-9)
