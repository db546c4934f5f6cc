"""Codes of the integers of whole tables: dense, and equal where the integers are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windjoin.pyx.encoding.integers import encode_integers

INTEGERS = st.one_of(
    st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, -(2**63), 2**63 - 1])
)


@given(st.lists(st.lists(INTEGERS, max_size=60), min_size=1, max_size=3))
def test_equal_integers_have_equal_codes(columns: list[list[int]]) -> None:
    codes, count = encode_integers([np.array(column, np.int64) for column in columns])
    by_value: dict[int, int] = {}
    for column, numbers in zip(columns, codes, strict=True):
        assert numbers.dtype == np.int32
        for value, number in zip(column, numbers.tolist(), strict=True):
            assert by_value.setdefault(value, number) == number
    assert sorted(by_value.values()) == list(range(count))


@pytest.mark.parametrize("step", [1, 8, 1 << 20, 1 << 40, (1 << 61) + 1])
def test_many_integers_in_any_steps(step: int) -> None:
    few = np.arange(20_000, dtype=np.int64)
    keys = few * np.int64(step) if step < 1 << 44 else (few.view(np.uint64) * step).view(np.int64)
    random = np.random.default_rng(3)
    asked = random.permutation(np.concatenate([keys, keys, keys]))
    codes, count = encode_integers([keys, asked])
    assert count == len(np.unique(keys)) == 20_000
    assert codes[0].tolist() == few.tolist()
    order = np.argsort(keys, kind="stable")
    at = order[np.searchsorted(keys[order], asked)]
    assert np.array_equal(codes[1], at)
