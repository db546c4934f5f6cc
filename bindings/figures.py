"""Numbers, shares, sizes and lengths of time as people read them, wherever text is printed."""

from __future__ import annotations

from itertools import pairwise

from windjoin.durations import NANOSECONDS, Duration
from windjoin.pyx.base.figures import figure as figure  # which kernels and diffusion have, too

_SIZES = list(NANOSECONDS.values())[1:]  # from days to nanoseconds


def percent(share: float) -> str:
    """A share of one.

    >>> percent(0.12345), percent(1.0)
    ('12.3 %', '100 %')
    """
    return "100 %" if share >= 1 else f"{figure(100 * share)} %"


def size(count: float) -> str:
    """A number of bytes.

    >>> size(1_430_000), size(12)
    ('1.43 MB', '12 B')
    """
    text = figure(count)
    return f"{text[:-1]} {text[-1]}B" if text[-1:].isalpha() else f"{text} B"


def length(ticks: float, unit: str | None, *, exact: bool = False) -> str:
    """A length of time in the two largest units that it has, or exactly; ``unit`` is a tick's.

    >>> length(225_116_000, "us"), length(86_399, "s"), length(1.5, "ms"), length(2_000_000, None)
    ('3m45s', '1d', '1ms500us', '2M ticks')
    """
    if unit is None:
        return f"{ticks:,} ticks" if exact else f"{figure(ticks)} ticks"
    nanoseconds = round(ticks * NANOSECONDS[unit])
    for larger, smaller in pairwise(_SIZES):
        if not exact and abs(nanoseconds) >= larger:
            nanoseconds = round(nanoseconds / smaller) * smaller
            break
    return str(Duration(nanoseconds))
