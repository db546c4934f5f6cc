"""UDF scan: a user's function as the index itself, called over the rows of a window as they lie."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from windjoin.kernels.access import Access, RowSource, Situation
from windjoin.kernels.functions import compiled_scan, compiled_sweep
from windjoin.kernels.side import Side, Table
from windjoin.kernels.spec import Function, Operand
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.indexes.basic_windows import BasicWindows
from windjoin.pyx.indexes.udf_scan import UdfScanIndex

PER_PROBE = 25.0  # nanoseconds
PER_ROW = 0.12
PER_CANDIDATE = 1.5
SLICES_PER_WINDOW = 4


@dataclass(frozen=True)
class UdfScan(Access):
    """Rows of the target that a function lets pass, given operands bound already."""

    predicate: Function

    name: ClassVar[str] = "scan by function"
    looks_at_rows: ClassVar[bool] = True

    @classmethod
    def options(cls, situation: Situation) -> Iterable[UdfScan]:
        rows = situation.window_rows
        for p in situation.predicates:
            if isinstance(p, Function):
                candidates = rows * situation.statistics.share(p)
                cost = PER_PROBE + rows * PER_ROW + candidates * PER_CANDIDATE
                yield cls(situation.target, (p,), candidates, cost, p)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.predicate.place)

    @property
    def own(self) -> tuple[Operand, ...]:
        """Operands that the target's rows bring."""
        return tuple(o for o in self.predicate.operands if o.stream == self.target)

    @property
    def bound(self) -> tuple[Operand, ...]:
        """Operands that partial results bring."""
        return tuple(o for o in self.predicate.operands if o.stream != self.target)

    def load(self, table: Table) -> Index:
        columns = [table.columns[o.column].view(np.int64) for o in self.own]
        sweep = compiled_sweep(self.predicate, self.target)
        return UdfScanIndex.load(columns, table.time, sweep, len(self.bound), table.first)

    def start(self, window: Window) -> Index:
        scan = compiled_scan(self.predicate, self.target)
        length = window.spec.window // SLICES_PER_WINDOW
        return BasicWindows(length, False, scan, len(self.bound), len(self.own))

    @property
    def source(self) -> RowSource:
        return "operands", tuple(operand.column for operand in self.own)

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        return {"operands": [(o.stream, sides[o.stream].view(o.column)) for o in self.bound]}
