"""Vectors near each other (or far apart), through tiles of many probes against many rows."""

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
from windjoin.pyx.similarity.tiles import VectorTiles

MEASURES = ("l2", "l1", "linf", "dot", "cosine")
PER_PROBE = 100.0  # nanoseconds
PER_ROW = 0.5  # of a row that asks, once
PER_BIT = 0.02
PER_CANDIDATE = 2.0


@dataclass(frozen=True)
class Vectors(Alike):
    """Rows of the target whose vector stands as asked to those of bound rows."""

    doubles: bool

    name: ClassVar[str] = "vector tiles"
    looks_at_rows: ClassVar[bool] = True

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Vectors]:
        varlen = situation.spec.streams[situation.target].varlen
        for column, chosen in choices(situation, _index_of):
            candidates, cost = group_cost(situation, chosen, PER_ROW, PER_BIT)
            cost += PER_PROBE + PER_CANDIDATE * candidates
            doubles = varlen[column].form == "float64"
            yield cls(situation.target, chosen, candidates, cost, chosen, column, doubles)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column, self.predicates[0].measure)

    def load(self, table: Table) -> Index:
        varlen_rows = table.varlen[self.column]
        index: Index = VectorTiles.load(
            self.predicates[0].measure,
            self.doubles,
            (varlen_rows.start, varlen_rows.length),
            table.time,
            table.first,
        )
        return index

    def start(self, window: Window) -> Index:
        return VectorTiles(self.predicates[0].measure, self.doubles)


def _index_of(p: Similarity) -> str | None:
    """Tiles hold vectors in a form of their own for each measure."""
    return p.measure if p.measure in MEASURES and p.operator not in ("==", "!=") else None
