"""Inequalities and wide bands through basic windows that are sorted by value."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from windjoin.kernels.access import Access, RowSource, Situation
from windjoin.kernels.ranges import Range, as_ranges, ranges_by_column
from windjoin.kernels.side import Side, Table, sortable
from windjoin.kernels.spec import Predicate
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.indexes.basic_windows import BasicWindows

PER_SLICE = 35.0  # nanoseconds: two binary searches
PER_CANDIDATE = 0.9
SLICES_PER_WINDOW = 8


@dataclass(frozen=True)
class Inequality(Access):
    """Rows of the target whose value lies on the right side of values bound already."""

    ranges: tuple[Range, ...]  # all on one column
    column: int
    rows_per_slice: int

    name: ClassVar[str] = "sorted basic windows"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Inequality]:
        rows = situation.window_rows
        per_slice = int(min(max(rows / SLICES_PER_WINDOW, 64), 1 << 16))
        for column, ranges in ranges_by_column(situation).items():
            candidates = rows * situation.statistics.share_of(ranges)
            slices = rows / per_slice + 1
            cost = slices * PER_SLICE + candidates * PER_CANDIDATE
            yield cls(situation.target, ranges, candidates, cost, ranges, column, per_slice)

    @property
    def serves(self) -> tuple[Predicate, ...]:
        return self.ranges

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column)

    def load(self, table: Table) -> Index:
        values = sortable(table.columns[self.column])
        return BasicWindows.load(table.time, values, self.rows_per_slice, table.first)

    def start(self, window: Window) -> Index:
        return BasicWindows(window.spec.window // SLICES_PER_WINDOW, True)

    @property
    def source(self) -> RowSource:
        return "columns", (self.column,)

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        return {"ranges": as_ranges([self.ranges], self.target, sides)}
