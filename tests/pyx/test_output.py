"""Results that are collected in parts and handed out as arrays, in memory that is used again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.output import Output, release
from windjoin.pyx.indexes.postings import KeyPostings
from windjoin.pyx.probing.pipeline import Pipeline

PIECE = (2 << 20) // 8  # rows of a column that one piece of memory holds
SIZES = (0, 1, 5000, PIECE // 2, PIECE - 16, PIECE, PIECE + 1, 2 * PIECE - 1, 3 * PIECE + 7)


def filled(first: int, count: int) -> Output:
    """Rows first .. first + count of one stream, each with the row of the same key in another."""
    times = np.zeros(count, np.int64)
    codes = np.arange(count, dtype=np.int32)
    order = Pipeline(0, ColumnView(times, first), 0, 4096)
    lists = KeyPostings.load(codes, times, count, first)
    order.add_hop(1, 0, lists, codes=[(0, ColumnView(codes, first))])
    output = Output(2)
    order.run_range(first, first + count, output)
    return output


def check(output: Output, rows: int) -> None:
    left, right = output.finish()
    assert np.array_equal(left, right)
    assert np.array_equal(np.sort(left), np.arange(rows))
    assert len(output) == 0
    left.sort()  # the memory is the array's own
    right[:] = -1
    assert np.array_equal(left, np.arange(rows))


@pytest.mark.parametrize("rows", SIZES)
def test_results_are_handed_out_once(rows: int) -> None:
    output = filled(0, rows)
    check(output, rows)
    assert [len(column) for column in output.finish()] == [0, 0]


@pytest.mark.parametrize(("rows", "more"), [*itertools.product(SIZES, SIZES)])
def test_an_output_takes_over_another(rows: int, more: int) -> None:
    whole, part = filled(0, rows), filled(rows, more)
    whole.append(part)
    assert len(whole) == rows + more
    check(whole, rows + more)


def test_an_output_can_grow_after_it_took_over_another() -> None:
    whole = filled(0, PIECE + 3)
    for number in range(1, 5):
        whole.append(filled(number * (PIECE + 3), PIECE + 3))
    check(whole, 5 * (PIECE + 3))


def test_memory_of_results_that_are_gone_is_used_again() -> None:
    release()
    columns = filled(0, 3 * PIECE).finish()
    release()  # what was reserved beyond the last result
    del columns
    assert release() == 2 * 3 * 8 * PIECE


def test_what_is_kept_is_bounded() -> None:
    release()
    columns = [filled(0, 18 * PIECE).finish() for _ in range(4)]
    del columns
    assert release() == 256 << 20
    assert release() == 0


def test_results_that_nobody_asks_for_leave_their_memory() -> None:
    release()
    output = filled(0, 2 * PIECE)
    output.discard()
    assert len(output) == 0
    assert release() >= 2 * 2 * 8 * PIECE
