"""From shares of basic windows to a few ranges of ages, which are what an index is asked for."""

from __future__ import annotations

import numpy as np
from windjoin.kernels.shedding.learned import BasicWindows
from windjoin.kernels.spec import F64

MOST_RANGES = 8  # what an index is asked for at once
Ages = tuple[int, int]


def ranges(windows: BasicWindows, share: F64, worth: F64) -> list[Ages]:
    """Ages, least and most, of what is to be compared; the worthiest if there are too many.

    >>> ranges(BasicWindows(10, 0, 39), np.array([0.0, 1.0, 0.5, 0.0]), np.ones(4))
    [(10, 24)]
    >>> ranges(BasicWindows(10, 0, 39), np.array([0.5, 1.0, 0.0, 1.0]), np.ones(4))
    [(5, 19), (30, 39)]
    """
    full = np.concatenate(([False], share >= 1, [False]))
    borders = np.flatnonzero(full[1:] != full[:-1])
    found: list[Ages] = []
    for first, past in zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True):
        found.append((windows.ages(first)[0], windows.ages(past - 1)[1]))
    for number in np.flatnonzero((share > 0) & (share < 1)).tolist():
        found.append(_part(windows, share, number))
    merged: list[Ages] = []
    for least, most in sorted(found):
        if merged and merged[-1][1] + 1 == least:
            merged[-1] = merged[-1][0], most
        elif least <= most:
            merged.append((least, most))
    return merged if len(merged) <= MOST_RANGES else _worthiest(windows, merged, share * worth)


def _worthiest(windows: BasicWindows, found: list[Ages], worth: F64) -> list[Ages]:
    def of(ages: Ages) -> float:
        first, last = (age // windows.width + windows.first for age in ages)
        return float(worth[first : last + 1].sum())

    return sorted(sorted(found, key=of, reverse=True)[:MOST_RANGES])


def _part(windows: BasicWindows, share: F64, number: int) -> Ages:
    """The part of a basic window that lies beside one that is asked too, else the newest part."""
    least, most = windows.ages(number)
    if share[number] >= 1:
        return least, most
    ticks = round(float(share[number]) * (most - least + 1))
    newer = number > 0 and share[number - 1] >= 1
    older = number + 1 < len(share) and share[number + 1] >= 1
    if older and not newer:
        return most - ticks + 1, most
    return least, least + ticks - 1
