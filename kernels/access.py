"""How a hop finds candidates: the interface of all indexes, and their registry.

An access is one way to reach the rows of a target stream from the streams bound so far.  A new
kind of index is one file with one subclass of `Access`, and one line in `kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from windjoin.kernels.side import Codes, sortable
from windjoin.kernels.spec import I64, JoinSpec, Key, Predicate
from windjoin.kernels.statistics import Statistics
from windjoin.pyx.base.figures import figure
from windjoin.pyx.encoding.keys import encode_pairs

if TYPE_CHECKING:
    from windjoin.kernels.side import Side, Table
    from windjoin.kernels.window import Arrivals, Window
    from windjoin.pyx.base.index import Index

MOST_RANKS = 2**31 - 64  # rows that an index with row numbers of 32 bits can hold
# codes of keys (together one key), columns as sortable integers or as they are, or a wide column
RowSource = tuple[Literal["keys", "columns", "operands", "wide", "nothing"], tuple[int, ...]]


@dataclass(frozen=True)
class Situation:
    """What is known when an access to ``target`` is chosen."""

    spec: JoinSpec
    statistics: Statistics
    bound: tuple[int, ...]
    target: int
    predicates: tuple[Predicate, ...]  # those that become decidable with this hop
    equalities: tuple[tuple[Key, Key], ...]  # (bound, target) keys that must be equal
    partials: float  # partial results that ask
    window_rows: float  # rows of the target in the window of one partial result


@dataclass(frozen=True)
class Access(ABC):
    """One way to find candidate rows of ``target``."""

    target: int
    covers: tuple[Predicate, ...]  # decided by the index alone: no filter needed
    candidates: float  # rows proposed per partial result, as estimated
    cost: float  # nanoseconds per partial result, as estimated

    name: ClassVar[str]
    looks_at_rows: ClassVar[bool] = False  # all between bounds of time, whatever it proposes

    @classmethod
    @abstractmethod
    def options(cls, situation: Situation) -> Iterable[Access]:
        """Every way this kind of index can serve the hop."""

    @property
    @abstractmethod
    def identity(self) -> Hashable:
        """Two accesses of one identity use one index."""

    @abstractmethod
    def load(self, table: Table) -> Index:
        """The index of a whole table in time order."""

    def load_for_start(self, table: Table) -> Index:
        """The index of a whole table that is only asked by start rows in time order."""
        return self.load(table)

    @abstractmethod
    def start(self, window: Window) -> Index:
        """The still empty index of a live window."""

    @property
    def source(self) -> RowSource:
        """What the index takes of a row, beside its time and number."""
        return "nothing", ()

    def values(self, window: Window, arrivals: Arrivals) -> tuple[Codes | None, list[I64]]:
        """The same of newly arrived rows, as ``Index.insert`` wants it."""
        what, numbers = self.source
        if what == "columns":
            return None, [sortable(arrivals.columns[number]) for number in numbers]
        if what == "operands":
            return None, [arrivals.columns[number].view(np.int64) for number in numbers]
        if what == "wide":
            varlen_rows = arrivals.varlen[numbers[0]]
            return varlen_rows.length, [varlen_rows.start]
        if what == "nothing":
            return None, []
        codes = arrivals.codes[numbers[0]]
        for space, number in zip(
            window.pair_spaces.get(self.identity, []), numbers[1:], strict=True
        ):
            codes = encode_pairs(space, codes, arrivals.codes[number])
        return codes, []

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        """What `Pipeline.add_hop` must know to ask the index, beyond the index itself."""
        return {}

    @property
    def serves(self) -> tuple[Predicate, ...]:
        """The predicates that the index is asked about."""
        return self.covers

    @property
    def decided(self) -> tuple[tuple[Key, Key], ...]:
        """The equalities of keys that hold of every row the index proposes."""
        return ()

    @property
    def why(self) -> str:
        """For explain(): what spoke for it."""
        return (
            f"about {figure(self.candidates)} candidates per partial result"
            f" cost least, {figure(self.cost)} ns"
        )


@cache
def kinds() -> tuple[type[Access], ...]:
    """All kinds of index, in the order in which explain() names them."""
    from windjoin.kernels.band import Band
    from windjoin.kernels.boxes import Boxes
    from windjoin.kernels.equality import Equality
    from windjoin.kernels.images import Images
    from windjoin.kernels.inequality import Inequality
    from windjoin.kernels.items import Items
    from windjoin.kernels.scan import Scan
    from windjoin.kernels.sets import Sets
    from windjoin.kernels.udf_scan import UdfScan
    from windjoin.kernels.vectors import Vectors

    return (Equality, Band, Boxes, Inequality, UdfScan, Items, Sets, Vectors, Images, Scan)
