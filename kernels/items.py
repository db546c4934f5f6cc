"""Sets of hardly more than one item, through time-sorted lists of the rows that have an item."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from windjoin.kernels.access import Situation
from windjoin.kernels.sets import asks_for_common_items
from windjoin.kernels.side import Table
from windjoin.kernels.similarity import Alike, choices, varlen_sides
from windjoin.kernels.spec import Similarity
from windjoin.kernels.statistics import ItemCounts
from windjoin.kernels.window import Window
from windjoin.pyx.base.figures import figure
from windjoin.pyx.base.index import Index
from windjoin.pyx.similarity.items import ItemPostings

LOOKUP = 12.0  # nanoseconds per item that is asked for
PER_ENTRY = 2.5
PER_COMPARISON = 25.0  # of two sets of several items
PER_CANDIDATE = 2.0


@dataclass(frozen=True)
class Items(Alike):
    """Rows of the target whose set has an item of that of a bound row."""

    seen: ItemCounts

    name: ClassVar[str] = "item lists"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Items]:
        for column, chosen in choices(situation, _index_of):
            p, *others = chosen
            seen = situation.statistics.items.get(p.place)
            if others or seen is None:
                continue
            turned = varlen_sides(p, situation.target)[0] == p.right
            asked_for = seen.right if turned else seen.left
            entries = seen.common * situation.window_rows
            candidates = situation.statistics.share(p) * situation.window_rows
            each = PER_ENTRY if seen.alone else PER_COMPARISON
            cost = LOOKUP * asked_for + each * entries + PER_CANDIDATE * candidates
            yield cls(situation.target, (p,), candidates, cost, (p,), column, seen)

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, self.column)

    @property
    def why(self) -> str:
        if self.seen.alone:
            return f"every set seen has one item at most: a hash index; {super().why}"
        left, right = figure(self.seen.left, 2), figure(self.seen.right, 2)
        return f"sets have {left} and {right} items; {super().why}"

    def load(self, table: Table) -> Index:
        varlen_rows = table.varlen[self.column]
        return ItemPostings.of_sets(
            (varlen_rows.start, varlen_rows.length), table.time, table.first
        )

    def start(self, window: Window) -> Index:
        return ItemPostings()


def _index_of(p: Similarity) -> str | None:
    return Items.name if asks_for_common_items(p) else None
