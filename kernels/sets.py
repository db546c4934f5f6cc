"""Sets that have enough in common, through bitmaps of rows per item."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from windjoin.kernels.access import Access, Situation
from windjoin.kernels.side import Side, Table
from windjoin.kernels.similarity import asker, choices, group_cost
from windjoin.kernels.spec import Similarity
from windjoin.kernels.window import Arrivals, Window
from windjoin.pyx.bitmaps import SetBitmaps
from windjoin.pyx.index import Index

MEASURES = (
    "overlap", "jaccard", "containment", "cosine_sets", "inner_product", "cosine_weights",
)  # fmt: skip
PER_PROBE = 100.0  # nanoseconds
PER_ROW = 0.03
PER_BIT = 0.02
PER_CANDIDATE = 2.0


@dataclass(frozen=True)
class Sets(Access):
    """Rows of the target whose set has enough items of that of a bound row."""

    predicates: tuple[Similarity, ...]  # on one column of the target
    column: int
    weighted: bool

    name: ClassVar[str] = "item bitmaps"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Sets]:
        wides = situation.spec.streams[situation.target].wides
        for column, chosen in choices(situation, _index_of):
            candidates, cost = group_cost(situation, chosen, PER_ROW, PER_BIT)
            cost += PER_PROBE + PER_CANDIDATE * candidates
            weighted = wides[column].form == "weighted"
            yield cls(situation.target, chosen, candidates, cost, chosen, column, weighted)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column)

    def load(self, table: Table) -> Index:
        records = table.wides[self.column]
        index: Index = SetBitmaps.load(
            self.weighted, (records.start, records.length), table.time, table.first
        )
        return index

    def start(self, window: Window) -> Index:
        return SetBitmaps(self.weighted)

    def values(self, window: Window, arrivals: Arrivals) -> Any:
        records = arrivals.wides[self.column]
        return records.start, records.length

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        return {"asker": asker(self.predicates, self.target, sides)}


def _index_of(p: Similarity) -> str | None:
    """The index of sets if rows without a common item can never pass."""
    above = (p.operator == ">" and p.threshold >= 0) or (p.operator == ">=" and p.threshold > 0)
    return Sets.name if above and p.measure in MEASURES else None
