"""Arrival numbers of rows whose numbers in a window have changed, and when they arrived."""

from __future__ import annotations

from typing import Any

import numpy as np
from windjoin.kernels.spec import I64


class Numbering:
    """Of the rows of one stream.

    Rows that stay when others leave memory become the last ones before those that are to come, so
    a number says when a row arrived but for those that stayed.

    >>> numbering = Numbering()
    >>> numbering.keep(np.array([1, 4]), 5)  # of rows 0 to 4
    >>> numbering.arrivals(np.array([3, 4, 5])).tolist()
    [1, 4, 5]
    """

    def __init__(self) -> None:
        self.base = 0  # number of the first row that has come since
        self._kept = np.empty(0, np.int64)  # arrival numbers of those before it
        self.tails = np.empty(0, np.int64)  # where epochs begin
        self.over = 0  # epochs before those

    def arrivals(self, rows: I64) -> I64:
        """Arrival numbers of rows that are in the window."""
        if not len(self._kept):
            return rows
        at = rows - (self.base - len(self._kept))
        old = at < len(self._kept)
        found: I64 = np.where(old, self._kept[np.minimum(at, len(self._kept) - 1)], rows)
        return found

    def plain(self, head: int) -> bool:
        """Whether numbers of the rows from ``head`` on say when they arrived."""
        return not len(self._kept) or head >= self.base

    def first(self, head: int) -> int:
        """The arrival number of the first row of the window."""
        at = head - (self.base - len(self._kept))
        return int(self._kept[at]) if 0 <= at < len(self._kept) else head

    def keep(self, rows: I64, tail: int) -> None:
        """Of rows before ``tail`` only some are there any more, and are now the last of them."""
        self._kept = np.ascontiguousarray(self.arrivals(rows))
        self.base = tail

    def kept_from(self, head: int) -> I64:
        """Arrival numbers of the rows from ``head`` on that came before others left."""
        return self._kept[max(head - (self.base - len(self._kept)), 0) :]

    def resume(self, kept: I64, base: int, tails: I64, over: int) -> None:
        """Go on where another left off."""
        self._kept, self.base, self.tails, self.over = kept, base, tails, over

    def there(self, arrivals: I64) -> Any:
        """Which rows did not leave."""
        if not len(self._kept):
            return arrivals >= self.base
        at = np.minimum(np.searchsorted(self._kept, arrivals), len(self._kept) - 1)
        return (arrivals >= self.base) | (self._kept[at] == arrivals)

    def numbers(self, arrivals: I64, head: int) -> I64:
        """Numbers in the window, of rows that are not there one before ``head``."""
        if not self.base:
            return arrivals
        at = np.searchsorted(self._kept, arrivals) + (self.base - len(self._kept))
        found = np.where(arrivals >= self.base, arrivals, at)
        return np.where(self.there(arrivals), found, head - 1)

    def next_epoch(self, tail: int) -> None:
        """Rows from ``tail`` on arrive in the next epoch."""
        self.tails = np.append(self.tails, tail)

    def epochs(self, arrivals: I64) -> I64:
        """In which epochs rows arrived."""
        return np.searchsorted(self.tails, arrivals, "right") + self.over

    def expire(self, first: int) -> None:
        """Nobody asks for rows before ``first`` any more."""
        gone = int(np.searchsorted(self.tails, first, "right"))
        gone = max(gone - 1, 0)
        self.tails, self.over = self.tails[gone:], self.over + gone
