"""One stream as hops see it: its columns by row number, its key codes, its indexes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.spec import F64, I64, StreamSpec
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.index import Index
from windjoin.pyx.encoding.keys import KeySpace

if TYPE_CHECKING:
    from windjoin.kernels.varlen import VarlenRows

ROW_NUMBER = -1  # the column that holds the row's own number

Codes = NDArray[np.int32]


class Side(ABC):
    """A `Table` of a batch run, or the `Window` of a live one."""

    def __init__(self, spec: StreamSpec) -> None:
        self.spec = spec
        self.pair_spaces: dict[Hashable, list[KeySpace]] = {}  # of composite keys, by access
        self.indexes: dict[Hashable, Index] = {}

    @abstractmethod
    def view(self, number: int) -> ColumnView:
        """Operand column ``number`` (or ROW_NUMBER) by row number."""

    @abstractmethod
    def values(self, number: int, rows: I64) -> NDArray[Any]:
        """Values of operand column ``number`` at rows that are here."""

    @abstractmethod
    def varlen_view(self, number: int) -> tuple[ColumnView, ColumnView]:
        """Starts and lengths of wide column ``number`` by row number."""

    @abstractmethod
    def code_view(self, key: int) -> ColumnView:
        """Codes of a key by row number."""

    @property
    @abstractmethod
    def time_view(self) -> ColumnView:
        """Times by row number."""


class Table(Side):
    """Rows [first, last) of a stream in time order; row numbers count from the whole's start."""

    def __init__(
        self, spec: StreamSpec, time: I64, columns: list[I64 | F64], numbers: I64 | None, first: int
    ) -> None:
        super().__init__(spec)
        self.time = time
        self.columns = columns
        self.numbers = numbers
        self.first = first
        self.varlen: list[VarlenRows] = []
        self.codes: list[Codes] = []
        self.code_counts: list[int] = []

    def view(self, number: int) -> ColumnView:
        if number == ROW_NUMBER:
            assert self.numbers is not None, "row numbers were not asked for"
            return ColumnView(self.numbers, self.first)
        return ColumnView(self.columns[number], self.first)

    def values(self, number: int, rows: I64) -> NDArray[Any]:
        found: NDArray[Any] = self.columns[number][rows - self.first]
        return found

    def varlen_view(self, number: int) -> tuple[ColumnView, ColumnView]:
        varlen_rows = self.varlen[number]
        return ColumnView(varlen_rows.start, self.first), ColumnView(varlen_rows.length, self.first)

    def code_view(self, key: int) -> ColumnView:
        return ColumnView(self.codes[key], self.first)

    @property
    def time_view(self) -> ColumnView:
        return ColumnView(self.time, self.first)


def sortable(values: NDArray[Any]) -> I64:
    """int64 of the same order: integers as they are, doubles by their bits, -0.0 as 0.0."""
    if values.dtype == np.int64:
        return values
    bits = (values + 0.0).view(np.int64)
    ordered: I64 = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return ordered
