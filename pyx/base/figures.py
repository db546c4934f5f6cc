"""Numbers as people read them: few digits, and powers of ten where there is no letter for them."""

from __future__ import annotations

LETTERS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
NO_WORD = 1e15  # from here on a power of ten says more than a letter would


def figure(value: float, digits: int = 3) -> str:
    """A number with so many digits that count, thousands of it as letters.

    >>> figure(1_234_567), figure(999.6), figure(950), figure(0.25), figure(-1430.2, 2)
    ('1.23M', '1k', '950', '0.25', '-1.4k')
    """
    rounded = float(f"{value:.{digits}g}")  # first: 999.6 is 1k, not 1e+03
    for size, letter in LETTERS if abs(rounded) < NO_WORD else ():
        if abs(rounded) >= size:
            return f"{rounded / size:.{max(digits, 3)}g}{letter}"
    return f"{rounded:.{max(digits, 3)}g}"
