"""What is missed, from the rows that are joined fully: an estimate, and how far it may be off.

Every row had a known chance to be joined fully, whatever it is, and of each of those that were it
is known how many of its results a selective row would have missed.  Weighed by their chance they
stand for the rows that were selective, but for the luck of the draw.

A few rows may have most of the results, and then much depends on whether these were drawn.  But a
row that misses many usually finds many too, and how many results selective rows found is known
exactly.  So what is estimated is only how the missed ones differ from ``slope`` times those found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace

CERTAIN = 1.96  # standard deviations: 95 %
WIDER = 1.45  # as measured: of skewed rows few are drawn, and what is not drawn is in no variance
SKEWED = 3.0  # errors above the estimate, on a logarithmic scale, at most
FEW = 8  # rows joined fully, below which a stretch is told together with the next
KEPT = 0.8  # weight of what earlier stretches say of the slope


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
    products: float = 0.0  # results by missed ones, of rows joined fully
    selective_found: float = 0.0


@dataclass(slots=True)
class Drawn:
    """Rows that were joined fully, each with the weight of those it stands for, and the others.

    once: sums by weight w = (1 - p) / p; twice: by w / p, of which variances are made
    """

    rows: float = 0.0
    selective: float = 0.0
    selective_found: float = 0.0
    selective_compared: float = 0.0
    results: float = 0.0
    once: float = 0.0
    missed: float = 0.0
    kept: float = 0.0
    compared: float = 0.0
    twice: float = 0.0
    missed2: float = 0.0
    kept2: float = 0.0
    compared2: float = 0.0
    missed_missed: float = 0.0
    kept_kept: float = 0.0
    missed_kept: float = 0.0
    compared_compared: float = 0.0

    @classmethod
    def of(cls, sums: Sums, share: float) -> Drawn:
        """Of a stretch in which ``share`` of the rows were drawn.

        >>> drawn = Drawn.of(Sums(full=2, missed=6, missed_squares=20, selective=18), 0.1)
        >>> drawn.missed_of(0.0)
        Missed(count=54.0, variance=360.0, unknown=False, doubt=129600.0)
        """
        w = (1.0 - share) / share
        v, kept = w / share, sums.found - sums.missed
        return cls(
            sums.full, sums.selective, sums.selective_found, sums.selective_compared,
            sums.found,
            w * sums.full, w * sums.missed, w * kept, w * sums.compared,
            v * sums.full, v * sums.missed, v * kept, v * sums.compared,
            v * sums.missed_squares,
            v * (sums.found_squares - 2 * sums.products + sums.missed_squares),
            v * (sums.products - sums.missed_squares),
            v * sums.compared_squares,
        )  # fmt: skip

    def add(self, other: Drawn) -> None:
        """Those of another stretch, too."""
        for one in fields(Drawn):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def with_rows_of(self, other: Drawn) -> Drawn:
        """The same selective rows, told from those that were drawn from among others, too."""
        both = replace(other)
        both.add(self)
        both.selective, both.selective_found = self.selective, self.selective_found
        both.selective_compared = self.selective_compared
        return both

    def fade(self) -> None:
        """Count less beside what comes now."""
        for one in fields(Drawn):
            setattr(self, one.name, KEPT * getattr(self, one.name))

    @property
    def slope(self) -> float:
        """How many more a row misses for one more that it finds."""
        if self.twice <= 0:
            return 0.0
        spread = self.kept_kept - self.kept2 * self.kept2 / self.twice
        both = self.missed_kept - self.missed2 * self.kept2 / self.twice
        return max(both / spread, 0.0) if spread > 1e-9 * self.kept_kept else 0.0

    def missed_of(self, slope: float) -> Missed:
        """What selective rows missed."""
        if self.once <= 0:
            return Missed(unknown=True)
        mean = (self.missed - slope * self.kept) / self.once
        squares = self.missed_missed - 2 * slope * self.missed_kept + slope * slope * self.kept_kept
        plain = self.missed2 - slope * self.kept2
        count = slope * self.selective_found + self.selective * mean
        variance = self._variance(squares, plain, mean)
        if self.results:  # where none of the rows missed a result, others may have
            each = self.selective / self.once * self.twice / self.once
            variance = max(variance, each * each)
        doubt = variance * variance / max(self.rows - 1.0, 1.0)
        return Missed(max(count, 0.0), variance, doubt=doubt)

    def left_out(self) -> Missed:
        """Comparisons that were not done for them."""
        if self.once <= 0:
            return Missed()
        mean = self.compared / self.once
        variance = self._variance(self.compared_compared, self.compared2, mean)
        return Missed(max(self.selective * mean - self.selective_compared, 0.0), variance)

    def _variance(self, squares: float, plain: float, mean: float) -> float:
        spread = max(squares - 2 * mean * plain + mean * mean * self.twice, 0.0)
        scale = self.selective / self.once
        return scale * scale * spread * self.rows / max(self.rows - 1.0, 1.0)


@dataclass(slots=True)
class Missed:
    """Results or comparisons that were left out: how many, and the variance of that.

    doubt: variance of the variance, as sum of squares over degrees of freedom

    >>> tuple(round(Missed(0.0, 100.0, doubt=d).error, 1) for d in (0.0, 2000.0))
    (28.4, 36.9)
    """

    count: float = 0.0
    variance: float = 0.0
    unknown: bool = False  # of some rows nothing is known
    doubt: float = 0.0

    def add(self, other: Missed) -> None:
        """Of one more stretch, drawn by itself."""
        self.count += other.count
        self.variance += other.variance
        self.unknown |= other.unknown
        self.doubt += other.doubt

    @property
    def error(self) -> float:
        """So far the truth may be off on either side, in 95 % of all cases.

        Where a few stretches have most of the variance it is badly known itself: by Student's t,
        with degrees of freedom as Satterthwaite adds them up.
        """
        loose = self.doubt / (self.variance * self.variance) if self.variance else 0.0
        return WIDER * (CERTAIN + 2.37 * loose + 2.8 * loose * loose) * math.sqrt(self.variance)

    @property
    def most(self) -> float:
        """How many there may be, in 95 % of all cases.

        Where few of the rows with much to miss were drawn, the estimate is low and its error too:
        so the truth is further above than below, as far as it is on a logarithmic scale.
        """
        if self.count <= 0:
            return self.count + self.error
        skewed = self.count * math.exp(min(self.error / self.count, SKEWED))
        return max(self.count + self.error, skewed)


@dataclass(slots=True)
class Recall:
    """Of one starting stream."""

    results: Missed = field(default_factory=Missed)
    comparisons: Missed = field(default_factory=Missed)
    _pending: Drawn = field(default_factory=Drawn)
    _last: Drawn = field(default_factory=Drawn)  # of the stretch before
    _known: Drawn = field(default_factory=Drawn)  # of all before, those long ago count less

    def add(self, sums: Sums, share: float) -> None:
        """Tell of a stretch in which the same was chosen, and that share drawn."""
        self._pending.add(Drawn.of(sums, share))
        if self._pending.selective and self._pending.rows >= FEW:
            self._tell()

    def _tell(self) -> None:
        one = self._pending
        if one.rows < FEW:
            one = one.with_rows_of(self._last)
        # of earlier stretches, as the luck of this one must not choose it
        found = one.missed_of((self._known if self._known.rows else one).slope)
        self._known.fade()
        self._known.add(self._pending)
        self._pending, self._last = Drawn(), one
        self.results.add(found)
        self.comparisons.add(one.left_out())

    @property
    def now(self) -> Recall:
        """With what has not been told yet."""
        if self._pending.selective == 0:
            return self
        copy = Recall(
            replace(self.results), replace(self.comparisons), replace(self._pending), self._last,
            replace(self._known),
        )  # fmt: skip
        copy._tell()
        return copy


def interval(found: float, missed: Missed) -> tuple[float, float, float]:
    """Recall, and between what it lies in 95 % of all cases.

    >>> interval(90.0, Missed(10.0, 0.0))
    (0.9, 0.9, 0.9)
    """
    if found + missed.count <= 0:
        return 1.0, 0.0 if missed.variance or missed.unknown else 1.0, 1.0
    most = missed.most
    least = max(missed.count - missed.error, 0.0)
    low = 0.0 if missed.unknown else found / (found + most)
    return found / (found + missed.count), low, found / max(found + least, 1e-300)
