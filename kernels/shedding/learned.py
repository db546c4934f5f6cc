"""Basic windows, and what is learned of them from the rows that are joined fully."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from windjoin.kernels.spec import F64
from windjoin.pyx.live import allotment

MOST_WINDOWS = 10_000  # basic windows of one direction
WINDOWS = 50  # of the longest window, unless their length is given
REACHES = (0, 1, 2, 4, 8, 16, 32)  # neighbours on either side
PRIORS = (0.5, 0.1, 0.02)  # results, for which all of a hop count in each basic window
GRANTED = 1.0  # rows that had candidates of any age, before anything is known
FADES = 0.5  # what counts of earlier periods


@dataclass(frozen=True, slots=True)
class AgeWindows:
    """How the rows that a start row can meet are divided by their age.

    Rows do not move between basic windows: an age is the start row's time less a row's own.

    >>> AgeWindows(10, ahead=0, behind=25).count, AgeWindows(10, ahead=5, behind=25).first
    (3, 1)
    """

    width: int
    ahead: int  # ticks by which a row may be later than the start row
    behind: int  # and earlier

    @property
    def first(self) -> int:
        """The number of that which begins at age 0."""
        return -(-self.ahead // self.width)

    @property
    def count(self) -> int:
        """How many there are."""
        return self.first + self.behind // self.width + 1

    def ages(self, number: int) -> tuple[int, int]:
        """The least and the greatest age."""
        least = (number - self.first) * self.width
        return max(least, -self.ahead), min(least + self.width - 1, self.behind)


@dataclass(slots=True)
class HopYield:
    """What rows of one stream found through one hop, by basic window of the rows there.

    probe, spread, candidate: what asking costs, asking all windows, and a candidate
    found: worth of the results; proposed: candidates; arrived: partial results that went on
    """

    windows: AgeWindows
    probe: float = 0.0
    spread: float = 0.0
    candidate: float = 1.0
    found: F64 = field(init=False)
    proposed: F64 = field(init=False)
    arrived: F64 | None = None
    reach: int = 0  # over so many neighbours worth is smoothed,
    prior: float = PRIORS[0]  # and drawn to the mean of all by so many results

    def __post_init__(self) -> None:
        self.found = np.zeros(self.windows.count)
        self.proposed = np.zeros(self.windows.count)

    def tune(self) -> None:
        """Look again over how many neighbours to smooth."""
        self.reach, self.prior = best_smoothing(self.found, self.proposed)

    def fade(self) -> None:
        """What was learned counts less from now on."""
        self.found *= FADES
        self.proposed *= FADES
        if self.arrived is not None:
            self.arrived *= FADES


@dataclass(slots=True)
class Direction:
    """What is known of the rows of one starting stream, and its hops in their order."""

    hops: list[HopYield]
    rows: float = 0.0  # joined fully
    each: float = 0.0  # candidates that a row has, by all that is known

    @property
    def known(self) -> float:
        """Rows, with some that are taken for granted."""
        return self.rows + GRANTED

    @property
    def granted(self) -> float:
        """Candidates of each hop that are taken for granted: as if rows had any age."""
        return GRANTED * self.each / len(self.hops)

    def fade(self) -> None:
        """What was learned counts less from now on."""
        self.rows *= FADES
        for hop in self.hops:
            hop.fade()


def smoothed(found: F64, proposed: F64, reach: int, prior: float = PRIORS[0]) -> F64:
    """Worth of results per basic window, by what candidates near it are worth.

    A part of a result, ``prior``, counts as if it were anywhere.

    >>> smoothed(np.array([0.0, 3.0, 0.0]), np.ones(3), 1).tolist()
    [1.4, 1.0, 1.4]
    """
    return allotment.smoothed(found, proposed, reach, prior)


def best_smoothing(found: F64, proposed: F64) -> tuple[int, float]:
    """Over how many neighbours to smooth, and by which prior: so that each result is best foretold.

    It is foretold by the others.  Narrow peaks are told from luck by that; where results are
    anywhere it takes many neighbours, or much of a prior.
    """
    return allotment.best_smoothing(found, proposed, REACHES, PRIORS)
