"""Images and other byte arrays near each other, through means of their segments as a bound."""

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
from windjoin.pyx.similarity.segments import ByteSegments

MEASURES = ("bytes_l1", "bytes_l2", "mean_abs_diff", "hamming", "hamming_bits")
PER_PROBE = 100.0  # nanoseconds
PER_ROW = 1.0  # of a row that asks, once
PER_BIT = 0.02
PER_CANDIDATE = 2.0


@dataclass(frozen=True)
class Images(Alike):
    """Rows of the target whose bytes are near those of bound rows."""

    name: ClassVar[str] = "segment means"
    looks_at_rows: ClassVar[bool] = True

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Images]:
        for column, chosen in choices(situation, _index_of):
            candidates, cost = group_cost(situation, chosen, PER_ROW, PER_BIT)
            cost += PER_PROBE + PER_CANDIDATE * candidates
            yield cls(situation.target, chosen, candidates, cost, chosen, column)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column)

    def load(self, table: Table) -> Index:
        varlen_rows = table.varlen[self.column]
        index: Index = ByteSegments.load(
            (varlen_rows.start, varlen_rows.length), table.time, table.first
        )
        return index

    def start(self, window: Window) -> Index:
        return ByteSegments()


def _index_of(p: Similarity) -> str | None:
    """The means bound differences from below: they help to find what is near."""
    return Images.name if p.measure in MEASURES and p.operator in ("<", "<=") else None
