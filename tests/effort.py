"""How many random cases a test draws: few when all tests run, many with the thorough profile."""

from __future__ import annotations

from hypothesis import settings

QUICK = 25  # what a test draws that says nothing
THOROUGH = 2000


def examples(quick: int) -> int:
    """How many a test draws that takes ``quick`` in the quick profile."""
    return max(quick * settings().max_examples // QUICK, 1)
