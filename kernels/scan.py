"""No index but time: every row of the window is a candidate."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from windjoin.kernels.access import Access, Situation
from windjoin.kernels.side import Table
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.indexes.basic_windows import BasicWindows

PER_PROBE = 15.0  # nanoseconds
PER_CANDIDATE = 0.9
SLICES_PER_WINDOW = 16


@dataclass(frozen=True)
class Scan(Access):
    """All rows of the target whose time fits."""

    rows_per_slice: int

    name: ClassVar[str] = "scan"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Scan]:
        rows = situation.window_rows
        per_slice = int(min(max(rows / SLICES_PER_WINDOW, 64), 1 << 16))
        yield cls(situation.target, (), rows, PER_PROBE + PER_CANDIDATE * rows, per_slice)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target)

    def load(self, table: Table) -> Index:
        return BasicWindows.load(table.time, None, self.rows_per_slice, table.first)

    def start(self, window: Window) -> Index:
        return BasicWindows(window.spec.window // SLICES_PER_WINDOW, False)
