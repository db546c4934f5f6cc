"""Compare results as multisets, and say which rows are missing or too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

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


def _some(rows: Counter[tuple[int, ...]]) -> str:
    shown = ", ".join(f"{row} x{times}" for row, times in sorted(rows.items())[:SHOWN])
    return shown + (", ..." if len(rows) > SHOWN else "")
