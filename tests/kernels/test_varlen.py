"""Wide columns are reordered and cut with their contents, whatever the lengths of their rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from windjoin.kernels.spec import ArrayColumn
from windjoin.kernels.varlen import slice_varlen, take_varlen


@pytest.mark.parametrize("lengths", [[3, 3, 3, 3], [2, 0, 5, 1], [0, 0, 0, 0], [4]])
@pytest.mark.parametrize("before", [0, 2])
def test_rows_come_with_their_contents(lengths: list[int], before: int) -> None:
    offsets = before + np.cumsum([0, *lengths])
    column = ArrayColumn(offsets, np.arange(offsets[-1] + 3))
    rows = [column.values[a:b].tolist() for a, b in pairwise(offsets)]
    for at in ([*range(len(rows))][::-1], [0, 0], []):
        taken = take_varlen(column, np.array(at, np.int64))
        assert contents(taken) == [rows[n] for n in at]
    for first in range(len(rows) + 1):
        assert contents(slice_varlen(column, first, len(rows))) == rows[first:]


def contents(column: ArrayColumn) -> list[list[int]]:
    assert column.offsets[0] == 0
    assert column.offsets[-1] == len(column.values)
    cuts = column.offsets.tolist()
    return [column.values[a:b].tolist() for a, b in pairwise(cuts)]
