"""Equality through time-ordered lists per key; several equalities make one composite key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from windjoin.kernels.access import MOST_RANKS, Access, RowSource, Situation
from windjoin.kernels.side import Codes, Side, Table
from windjoin.kernels.spec import Equal, Key
from windjoin.kernels.statistics import DERIVED_SHARE
from windjoin.kernels.window import Window
from windjoin.pyx.base.index import Index
from windjoin.pyx.encoding.keys import KeySpace, encode_pairs
from windjoin.pyx.indexes.cache_lines import CacheLineIndex
from windjoin.pyx.indexes.csr_postings import CsrPostings
from windjoin.pyx.indexes.postings import KeyPostings

LOOKUP = 9.0  # nanoseconds per partial result
PER_PART = 6.0  # for each further part of a composite key
PER_CANDIDATE = 1.8


@dataclass(frozen=True)
class Equality(Access):
    """Rows of the target whose key equals that of rows bound already."""

    parts: tuple[tuple[Key, Key], ...]  # (bound, target)

    name: ClassVar[str] = "hash lists"

    @classmethod
    def options(cls, situation: Situation) -> Iterable[Equality]:
        parts = _one_per_target_key(situation.equalities)
        if not parts:
            return
        pairs = {frozenset(part) for part in parts}
        covers = tuple(
            p
            for p in situation.predicates
            if isinstance(p, Equal) and frozenset((p.left, p.right)) in pairs
        )
        candidates = situation.window_rows
        for p in covers:
            candidates *= situation.statistics.share(p)
        if not covers:  # an equality that only follows from others
            candidates *= DERIVED_SHARE
        cost = LOOKUP + PER_PART * (len(parts) - 1) + PER_CANDIDATE * candidates
        yield cls(situation.target, covers, candidates, cost, parts)

    @property
    def decided(self) -> tuple[tuple[Key, Key], ...]:
        return self.parts

    @property
    def identity(self) -> Hashable:
        return (self.name, self.target, tuple(target.key for _, target in self.parts))

    def load(self, table: Table) -> Index:
        codes, count = self._encoded(table)
        return KeyPostings.load(codes, table.time, count, table.first)

    def load_for_start(self, table: Table) -> Index:
        if len(table.time) > MOST_RANKS:
            return self.load(table)
        codes, count = self._encoded(table)
        return CsrPostings.load(codes, table.time, count, table.first)

    def _encoded(self, table: Table) -> tuple[Codes, int]:
        """The code of every row's composite key, and how many there are."""
        keys = [target.key for _, target in self.parts]
        codes, count = table.codes[keys[0]], table.code_counts[keys[0]]
        spaces = []
        for key in keys[1:]:
            spaces.append(KeySpace())
            codes = encode_pairs(spaces[-1], codes, table.codes[key])
            count = spaces[-1].n_codes
        table.pair_spaces[self.identity] = spaces
        return codes, count

    def start(self, window: Window) -> Index:
        window.pair_spaces[self.identity] = [KeySpace() for _ in self.parts[1:]]
        return CacheLineIndex()

    @property
    def source(self) -> RowSource:
        return "keys", tuple(target.key for _, target in self.parts)

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        return {
            "codes": [
                (bound.stream, sides[bound.stream].code_view(bound.key)) for bound, _ in self.parts
            ],
            "spaces": sides[self.target].pair_spaces[self.identity],
        }


def _one_per_target_key(
    equalities: tuple[tuple[Key, Key], ...],
) -> tuple[tuple[Key, Key], ...]:
    """The first equality for each key of the target; the others stay filters."""
    first: dict[Key, tuple[Key, Key]] = {}
    for bound, target in equalities:
        first.setdefault(target, (bound, target))
    return tuple(first[key] for key in sorted(first, key=lambda key: key.key))[:8]
