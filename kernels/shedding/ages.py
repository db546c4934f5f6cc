"""From shares of basic windows to a few ranges of ages, which are what an index is asked for."""

from __future__ import annotations

from windjoin.kernels.shedding.learned import AgeWindows
from windjoin.kernels.spec import F64
from windjoin.pyx.live import allotment

MOST_RANGES = 8  # what an index is asked for at once
Ages = tuple[int, int]


def ranges(windows: AgeWindows, share: F64, worth: F64) -> list[Ages]:
    """Ages, least and most, of what is to be compared; the worthiest if there are too many.

    Of a basic window that is asked in part it is the part beside one that is asked too, else the
    newest.

    >>> import numpy as np
    >>> ranges(AgeWindows(10, 0, 39), np.array([0.0, 1.0, 0.5, 0.0]), np.ones(4))
    [(10, 24)]
    >>> ranges(AgeWindows(10, 0, 39), np.array([0.5, 1.0, 0.0, 1.0]), np.ones(4))
    [(5, 19), (30, 39)]
    """
    return allotment.ranges(windows, share, worth, MOST_RANGES)
