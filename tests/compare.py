"""Compare results as multisets, and say which rows are missing or too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHOWN = 8


def assert_same_results(
    got: Iterable[tuple[int, ...]], expected: Counter[tuple[int, ...]], what: str = "results"
) -> None:
    """Fail unless ``got`` holds every expected row as often as expected, and nothing else."""
    actual = Counter(got)
    missing, unexpected = expected - actual, actual - expected
    problems = [
        f"{len(rows)} {word}: {_some(rows)}"
        for word, rows in (("missing", missing), ("unexpected or doubled", unexpected))
        if rows
    ]
    assert not problems, (
        f"{what}: {actual.total()} rows, expected {expected.total()}; " + "; ".join(problems)
    )


def codes(members: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Combinations of row numbers as sorted integers: for millions of them tuples take long.

    ``members``: the row numbers of each stream, all of them below 65,536.

    >>> codes([np.array([1, 0]), np.array([2, 5])]).tolist()
    [5, 65538]
    """
    numbers: NDArray[np.int64] = np.zeros(1, np.int64)
    for rows in members:
        assert not len(rows) or 0 <= rows.min() <= rows.max() < 1 << 16
        numbers = (numbers << 16) + rows
    return np.sort(numbers)


def assert_same_codes(got: Iterable[NDArray[Any]], expected: NDArray[np.int64]) -> None:
    """Fail unless combinations, as `codes`, are the expected ones, each as often."""
    found = np.sort(np.concatenate([*got]))
    if np.array_equal(found, expected):
        return
    as_rows = ((int(one) >> 16, int(one) & 0xFFFF) for one in found)
    owed = Counter((int(one) >> 16, int(one) & 0xFFFF) for one in expected)
    assert_same_results(as_rows, owed)


def _some(rows: Counter[tuple[int, ...]]) -> str:
    shown = ", ".join(f"{row} x{times}" for row, times in sorted(rows.items())[:SHOWN])
    return shown + (", ..." if len(rows) > SHOWN else "")
