"""Two or more inequalities or bands at once, through boxes over the columns they bound."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from windjoin.kernels.access import Access, RowSource, Situation
from windjoin.kernels.ranges import MOST_CONDITIONS, Range, as_ranges, ranges_by_column
from windjoin.kernels.side import Side, Table, sortable
from windjoin.kernels.spec import Predicate
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.indexes.boxes import ValueBoxes

MOST_COLUMNS = 4
PER_RUN = 25.0  # nanoseconds
PER_BOX = 5.0
PER_CANDIDATE = 1.3
BOX_ROWS = 8
RUNS_PER_WINDOW = 3


@dataclass(frozen=True)
class Boxes(Access):
    """Rows of the target of which each of several columns lies in a range of its own."""

    ranges: tuple[tuple[Range, ...], ...]  # by column
    columns: tuple[int, ...]
    rows_per_run: int

    name: ClassVar[str] = "boxes of several values"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Boxes]:
        statistics = situation.statistics
        by_column = ranges_by_column(situation)
        columns = sorted(by_column, key=lambda c: (statistics.share_of(by_column[c]), c))
        columns = sorted(columns[:MOST_COLUMNS])
        if len(columns) < 2 or sum(len(by_column[c]) for c in columns) > MOST_CONDITIONS:
            return
        ranges = tuple(by_column[c] for c in columns)
        served = tuple(p for column in ranges for p in column)
        rows = situation.window_rows
        candidates = rows * statistics.share_of(served)
        # boxes that the ranges cut through, were the rows spread evenly
        cut = (rows / BOX_ROWS) ** (1 - 1 / len(columns)) + candidates / BOX_ROWS
        cost = RUNS_PER_WINDOW * PER_RUN + cut * PER_BOX + candidates * PER_CANDIDATE
        per_run = int(min(max(rows / RUNS_PER_WINDOW, 64), 1 << 17))
        yield cls(situation.target, served, candidates, cost, ranges, tuple(columns), per_run)

    @property
    def serves(self) -> tuple[Predicate, ...]:
        return tuple(p for column in self.ranges for p in column)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.columns)

    def load(self, table: Table) -> Index:
        values = [sortable(table.columns[c]) for c in self.columns]
        return ValueBoxes.load(values, table.time, self.rows_per_run, table.first)

    def start(self, window: Window) -> Index:
        return ValueBoxes(len(self.columns), window.spec.window)

    @property
    def source(self) -> RowSource:
        return "columns", self.columns

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        return {"ranges": as_ranges(self.ranges, self.target, sides)}
