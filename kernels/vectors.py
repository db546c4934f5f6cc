"""Vectors near each other (or far apart), through tiles of many probes against many rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from windjoin.kernels.access import Access, Situation
from windjoin.kernels.side import Side, Table
from windjoin.kernels.similarity import asked, wide_sides
from windjoin.kernels.spec import Similarity
from windjoin.kernels.window import Arrivals, Window
from windjoin.pyx.blocks import GroupAsker
from windjoin.pyx.index import Index
from windjoin.pyx.tiles import VectorTiles

MEASURES = ("l2", "l1", "linf", "dot", "cosine")
PER_PROBE = 100.0  # nanoseconds
PER_ROW = 0.5
PER_CANDIDATE = 2.0
LATER = 1.01  # a stream bound later asks with more different rows


@dataclass(frozen=True)
class Vectors(Access):
    """Rows of the target whose vector stands as asked to that of a bound row."""

    predicate: Similarity
    column: int
    doubles: bool

    name: ClassVar[str] = "vector tiles"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Vectors]:
        target = situation.target
        for p in situation.predicates:
            if not isinstance(p, Similarity) or p.measure not in MEASURES:
                continue
            if p.operator in ("==", "!="):
                continue
            bound, own = wide_sides(p, target)
            wide = situation.spec.streams[target].wides[own.column]
            candidates = situation.window_rows * situation.statistics.share(p)
            cost = PER_PROBE + PER_ROW * situation.window_rows + PER_CANDIDATE * candidates
            cost *= LATER ** situation.bound.index(bound.stream)
            doubles = wide.form == "float64"
            yield cls(target, (p,), candidates, cost, p, own.column, doubles)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column, self.predicate.measure)

    def load(self, table: Table) -> Index:
        records = table.wides[self.column]
        index: Index = VectorTiles.load(
            self.predicate.measure,
            self.doubles,
            (records.start, records.length),
            table.time,
            table.first,
        )
        return index

    def start(self, window: Window) -> Index:
        return VectorTiles(self.predicate.measure, self.doubles)

    def values(self, window: Window, arrivals: Arrivals) -> Any:
        records = arrivals.wides[self.column]
        return records.start, records.length

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        bound, _ = wide_sides(self.predicate, self.target)
        return {"asker": (bound.stream, GroupAsker(*asked(self.predicate, self.target, sides)))}
