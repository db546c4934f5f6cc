"""Sets that have enough in common, through bitmaps of rows per item."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from windjoin.kernels.access import Situation
from windjoin.kernels.side import Table
from windjoin.kernels.similarity import Alike, choices, group_cost
from windjoin.kernels.spec import Similarity
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.similarity.bitmaps import SetBitmaps

MEASURES = (
    "overlap", "jaccard", "containment", "cosine_sets", "inner_product", "cosine_weights",
)  # fmt: skip
PER_PROBE = 100.0  # nanoseconds
PER_ROW = 0.03
PER_BIT = 0.02
PER_CANDIDATE = 2.0


@dataclass(frozen=True)
class Sets(Alike):
    """Rows of the target whose set has enough items of that of a bound row."""

    weighted: bool

    name: ClassVar[str] = "item bitmaps"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Sets]:
        varlen = situation.spec.streams[situation.target].varlen
        for column, chosen in choices(situation, _index_of):
            candidates, cost = group_cost(situation, chosen, PER_ROW, PER_BIT)
            cost += PER_PROBE + PER_CANDIDATE * candidates
            weighted = varlen[column].form == "weighted"
            yield cls(situation.target, chosen, candidates, cost, chosen, column, weighted)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column)

    def load(self, table: Table) -> Index:
        varlen_rows = table.varlen[self.column]
        index: Index = SetBitmaps.load(
            self.weighted, (varlen_rows.start, varlen_rows.length), table.time, table.first
        )
        return index

    def start(self, window: Window) -> Index:
        return SetBitmaps(self.weighted)


def asks_for_common_items(p: Similarity) -> bool:
    """Whether rows without a common item can never pass."""
    above = (p.operator == ">" and p.threshold >= 0) or (p.operator == ">=" and p.threshold > 0)
    return above and p.measure in MEASURES


def _index_of(p: Similarity) -> str | None:
    return Sets.name if asks_for_common_items(p) else None
