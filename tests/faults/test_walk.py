"""Want of memory is a `MemoryError` at every single allocation, whatever is joined and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.allocator import walked
from tests.faults.joins import KINDS, ways_of

PAIRS = [f"{kind}/{way}" for kind in KINDS for way in ways_of(kind)]
FEW = (
    "sets/run", "sets of three/push rows_only", "weighted sets/push to hosts", "l2/push arrays",
    "texts/run on two threads", "images/push",
)  # fmt: skip


@pytest.mark.faults
@pytest.mark.parametrize("pair", PAIRS)
def test_every_allocation_may_fail(pair: str, allocator: Path):
    (found,) = walked(allocator, pair)
    assert found["places"] >= found["sites"]
    # as-of joins of whole tables are arrays of NumPy's, but for two or three
    assert found["places"] > (1 if pair.startswith("as-of/") else 5)
    assert found["wrong"] == {}
    with_threads = "hosts" in pair or "threads" in pair
    assert found["not reached"] == 0 or with_threads  # of these not always the same call


def test_some_allocations_may_fail(allocator: Path):
    """So few of them that it takes seconds."""
    for pair, found in zip(FEW, walked(allocator, *FEW, which="8"), strict=True):
        assert found["wrong"] == {}, pair
