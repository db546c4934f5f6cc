"""Items of rows become sets: their codes ascending, each once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from windjoin.pyx.encoding.keys import KeySpace
from windjoin.pyx.encoding.varlen import contents, set_rows, set_varlen_rows

SIZES = [*range(0, 19), 31, 32, 47, 48, 49, 50, 200]  # sorted in three ways, by their number


def rows_of(random: np.random.Generator, most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and items of rows of all sizes: any, in order, backwards and all the same."""
    rows = []
    for size in SIZES:
        some = random.integers(0, most, size)
        rows += [some, np.sort(some), np.sort(some)[::-1], np.full(size, 3), np.arange(size)]
    offsets = np.cumsum([0, *map(len, rows)])
    return offsets.astype(np.int64), np.concatenate(rows).astype(np.int64)


def sets(starts: NDArray[np.int64], lengths: NDArray[np.int32]) -> list[list[int]]:
    offsets, codes = contents(starts, lengths, np.int32)
    return [codes[i:j].tolist() for i, j in pairwise(offsets)]


@pytest.mark.parametrize("most", [4, 30, 5000])
def test_codes_of_each_row_ascend_and_none_comes_twice(most: int) -> None:
    offsets, codes = rows_of(np.random.default_rng(most), most)
    codes -= 2  # what is negative is no item
    given = codes.astype(np.int32)  # sets are made in place
    starts, lengths = set_varlen_rows(offsets, given)
    expected = [
        sorted({int(code) for code in codes[i:j] if code >= 0}) for i, j in pairwise(offsets)
    ]
    assert sets(starts, lengths) == expected


@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("places", [np.int32, np.int64])
@pytest.mark.parametrize("most", [4, 5000])
def test_items_of_pushed_rows(
    width: type[np.signedinteger], places: type[np.signedinteger], most: int
) -> None:
    offsets, items = rows_of(np.random.default_rng(most), most)
    space, begin = KeySpace(), 7  # rows of a slice do not begin at 0
    offsets, items = offsets[begin:], items - most // 2
    starts, lengths, codes = set_rows(space, offsets.astype(places), items.astype(width))
    assert len(codes) == offsets[-1] - offsets[0]
    keys = space.keys()
    got = [sorted(keys[row].tolist()) for row in sets(starts, lengths)]
    assert got == [sorted(set(items[i:j].tolist())) for i, j in pairwise(offsets)]
