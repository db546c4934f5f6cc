"""Vectors near each other (or far apart), through tiles of many probes against many rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from windjoin.kernels.access import Access, Situation
from windjoin.kernels.side import Side, Table
from windjoin.kernels.similarity import MOST_PARTS, asker, group_cost, wide_sides
from windjoin.kernels.spec import Similarity
from windjoin.kernels.window import Arrivals, Window
from windjoin.pyx.index import Index
from windjoin.pyx.tiles import VectorTiles

MEASURES = ("l2", "l1", "linf", "dot", "cosine")
PER_PROBE = 100.0  # nanoseconds
PER_ROW = 0.5  # of a row that asks, once
PER_BIT = 0.02
PER_CANDIDATE = 2.0


@dataclass(frozen=True)
class Vectors(Access):
    """Rows of the target whose vector stands as asked to those of bound rows."""

    predicates: tuple[Similarity, ...]  # one measure, one column of the target
    column: int
    doubles: bool

    name: ClassVar[str] = "vector tiles"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Vectors]:
        alike: dict[tuple[str, int], list[Similarity]] = {}
        for p in situation.predicates:
            if (
                isinstance(p, Similarity)
                and p.measure in MEASURES
                and p.operator not in ("==", "!=")
            ):
                own = wide_sides(p, situation.target)[1]
                alike.setdefault((p.measure, own.column), []).append(p)
        for (_, column), found in alike.items():
            wide = situation.spec.streams[situation.target].wides[column]
            choices = [(p,) for p in found]
            if len(found) > 1:
                choices.append(tuple(found[:MOST_PARTS]))
            for chosen in choices:
                candidates, cost = group_cost(situation, chosen, PER_ROW, PER_BIT)
                cost += PER_PROBE + PER_CANDIDATE * candidates
                doubles = wide.form == "float64"
                yield cls(situation.target, chosen, candidates, cost, chosen, column, doubles)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column, self.predicates[0].measure)

    def load(self, table: Table) -> Index:
        records = table.wides[self.column]
        index: Index = VectorTiles.load(
            self.predicates[0].measure,
            self.doubles,
            (records.start, records.length),
            table.time,
            table.first,
        )
        return index

    def start(self, window: Window) -> Index:
        return VectorTiles(self.predicates[0].measure, self.doubles)

    def values(self, window: Window, arrivals: Arrivals) -> Any:
        records = arrivals.wides[self.column]
        return records.start, records.length

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        return {"asker": asker(self.predicates, self.target, sides)}
