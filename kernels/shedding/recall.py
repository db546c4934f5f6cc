"""What is missed, from the rows that are joined fully: an estimate, and how far it may be off.

Of every stretch of time and starting stream so many rows were drawn to be joined fully, whatever
they are, and of each of them it is known how many of its results a selective row would have missed.
So the rows that were selective missed as many on average, but for the luck of the draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

CERTAIN = 1.96  # standard deviations: 95 %
FEW = 8  # rows joined fully, below which a stretch is told together with the next


@dataclass(slots=True)
class Sums:
    """What `Shedder.sums` counts: rows joined fully, and the others."""

    full: float = 0.0
    found: float = 0.0
    found_squares: float = 0.0
    missed: float = 0.0
    missed_squares: float = 0.0
    compared: float = 0.0
    compared_squares: float = 0.0
    selective: float = 0.0
    selective_compared: float = 0.0

    def add(self, other: Sums) -> None:
        """Count those of another stretch with these."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def with_drawn(self, other: Sums) -> Sums:
        """The same rows, told from those that were drawn from among others, too."""
        both = replace(other)
        both.add(self)
        both.selective, both.selective_compared = self.selective, self.selective_compared
        return both


@dataclass(slots=True)
class Missed:
    """Results or comparisons that were left out: how many, and the variance of that."""

    count: float = 0.0
    variance: float = 0.0
    unknown: bool = False  # of some rows nothing is known

    def add(self, other: Missed) -> None:
        """Of one more stretch, drawn by itself."""
        self.count += other.count
        self.variance += other.variance
        self.unknown |= other.unknown

    @property
    def error(self) -> float:
        """So far the truth may be off on either side, in 95 % of all cases."""
        return CERTAIN * math.sqrt(self.variance)


@dataclass(slots=True)
class Recall:
    """Of one starting stream."""

    results: Missed = field(default_factory=Missed)
    comparisons: Missed = field(default_factory=Missed)
    _pending: Sums = field(default_factory=Sums)
    _last: Sums = field(default_factory=Sums)  # of the stretch before

    def add(self, sums: Sums, last: bool = False) -> None:
        """Tell of a stretch in which the same was chosen; ``last``: however few rows it has."""
        self._pending.add(sums)
        one = self._pending
        if one.selective == 0 or (one.full < FEW and not last):
            return
        if one.full < FEW:
            one = one.with_drawn(self._last)
        self._pending, self._last = Sums(), one
        self.results.unknown |= one.full == 0
        count, variance = expected(one.selective, one.full, one.missed, one.missed_squares)
        # where none of the rows missed a result, others may have: as if one had
        count_found, _ = expected(one.selective, one.full, one.found, one.found_squares)
        least = count_found / max(one.found, 1.0)
        self.results.add(Missed(count, max(variance, least * least if one.found else 0.0)))
        whole, variance = expected(
            one.selective, one.full, one.compared, one.compared_squares
        )  # fmt: skip
        self.comparisons.add(Missed(max(whole - one.selective_compared, 0.0), variance))

    @property
    def now(self) -> Recall:
        """With what has not been told yet."""
        if self._pending.selective == 0:
            return self
        copy = Recall(
            replace(self.results),
            replace(self.comparisons),
        )
        copy._last = self._last
        copy.add(self._pending, last=True)
        return copy


def expected(rows: float, drawn: float, total: float, squares: float) -> tuple[float, float]:
    """What rows have together, as other rows drawn from among them have ``total``; its variance.

    >>> expected(rows=90, drawn=10, total=20, squares=40)
    (180.0, 0.0)
    """
    if drawn == 0:
        return 0.0, 0.0
    mean = total / drawn
    spread = max(squares / drawn - mean * mean, 0.0) * drawn / max(drawn - 1, 1)
    return rows * mean, rows * (rows + drawn) / drawn * spread


def interval(found: float, missed: Missed) -> tuple[float, float, float]:
    """Recall, and between what it lies in 95 % of all cases.

    >>> interval(90.0, Missed(10.0, 0.0))
    (0.9, 0.9, 0.9)
    """
    if found + missed.count <= 0:
        return 1.0, 0.0 if missed.variance or missed.unknown else 1.0, 1.0
    most = missed.count + missed.error
    least = max(missed.count - missed.error, 0.0)
    low = 0.0 if missed.unknown else found / (found + most)
    return found / (found + missed.count), low, found / max(found + least, 1e-300)
