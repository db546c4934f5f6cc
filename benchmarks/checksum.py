"""One number for a set of results, the same in any order and in any engine.

A result (i, j[, k]) of row numbers is worth ``x * x mod P`` with
``x = (i * A + j * B + k * C + D) mod P``; the checksum is the plain sum.  Row numbers below 2**28
cannot overflow an int64 on the way, and any SQL dialect can evaluate the same formula.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
FACTORS = (1_000_003, 179_424_673, 982_451_653)
OFFSET = 12_345
PRIME = 2_147_483_647
_BLOCK = 1 << 18  # four int64 blocks of this length stay in a second-level cache


def checksum(members: Sequence[I64]) -> int:
    """Sum up results given as one array of row numbers per stream (two or three streams).

    >>> checksum([np.array([0, 1]), np.array([0, 2])]) == sum(
    ...     ((i * 1_000_003 + j * 179_424_673 + 12_345) % PRIME) ** 2 % PRIME
    ...     for i, j in [(0, 0), (1, 2)])
    True
    """
    if not 2 <= len(members) <= len(FACTORS):
        raise ValueError(f"a checksum takes 2 or 3 columns of row numbers, got {len(members)}")
    total = 0
    for start in range(0, len(members[0]), _BLOCK):
        x = np.full(len(members[0][start : start + _BLOCK]), OFFSET, dtype=np.int64)
        for factor, member in zip(FACTORS, members, strict=False):
            x += np.asarray(member[start : start + _BLOCK], dtype=np.int64) * factor
        x %= PRIME
        x *= x
        x %= PRIME
        total += int(x.sum())
    return total
