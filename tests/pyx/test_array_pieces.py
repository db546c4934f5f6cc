"""What is done to whole arrays piece by piece is what NumPy does at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from numpy.typing import NDArray
from windjoin.pyx.base.pieces import joined, sorting, sorting_by, taken
from windjoin.run import _as_few

PIECE = 1 << 20
N = 2 * PIECE + PIECE // 3


def shapes() -> dict[str, NDArray[np.int64]]:
    rng = np.random.default_rng(5)
    return {
        "random": rng.integers(-(2**63), 2**63 - 1, N),
        "few values": rng.integers(0, 3, N),
        "nearly in order": np.arange(N) + rng.integers(0, 1000, N),
        "in order": np.arange(N),
        "reversed": np.arange(N)[::-1].copy(),
        "all equal": np.zeros(N, np.int64),
        "two files": np.concatenate([np.arange(0, N, 2), np.arange(1, N, 2)]),
        "four and a rest": rng.integers(0, 50, 4 * PIECE + 1),
        "one row": np.array([7]),
        "none": np.empty(0, np.int64),
    }


@pytest.mark.parametrize("shape", shapes())
def test_sorting_is_stable_whatever_the_order(shape: str) -> None:
    keys = shapes()[shape]
    order, in_order = sorting(keys)
    expected = np.argsort(keys, kind="stable")
    assert np.array_equal(order, expected)
    assert np.array_equal(in_order, keys[expected])


@pytest.mark.parametrize("bits", [0, 1, 10, 11, 12, 22, 23, 33, 34, 45, 49, 50, 56, 63, 64])
@pytest.mark.parametrize("n", [(1 << 14) - 1, 1 << 14, 40_000])
def test_sorting_is_stable_in_any_range(bits: int, n: int) -> None:
    rng = np.random.default_rng(bits)
    keys = rng.integers(0, 2**bits, n, np.uint64, endpoint=False) if bits < 64 else None
    keys = rng.integers(0, 2**64 - 1, n, np.uint64, endpoint=True) if keys is None else keys
    signed = (keys - np.uint64(2**bits // 2)).view(np.int64)
    order, in_order = sorting(signed)
    expected = np.argsort(signed, kind="stable")
    assert np.array_equal(order, expected)
    assert np.array_equal(in_order, signed[expected])


def test_the_last_key_decides_first() -> None:
    rng = np.random.default_rng(6)
    keys = [rng.integers(0, 4, N) for _ in range(3)]
    assert np.array_equal(sorting_by(keys), np.lexsort(keys))


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.int32, np.bool_])
def test_rows_are_taken_and_parts_joined(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 2, N).astype(dtype)
    rows = rng.integers(0, N, N)
    got = taken(values, rows)
    assert got.dtype == dtype
    assert np.array_equal(got, values[rows])
    table = np.stack([values, values], axis=1)
    assert np.array_equal(taken(table, rows), table[rows])
    parts = np.array_split(values, [0, 5, PIECE, PIECE + 9])
    whole = joined(parts)
    assert whole.dtype == dtype
    assert np.array_equal(whole, values)


def test_keys_are_told_together_as_far_as_there_is_room() -> None:
    rng = np.random.default_rng(8)
    for sizes in ([5, 7, 3], [2**40, 2**20, 2**30], [2**40, 2**40, 9]):
        keys = [rng.integers(0, size, 200) for size in sizes]
        few = _as_few(keys, sizes)
        assert len(few) < len(keys)
        assert np.array_equal(np.lexsort(few[::-1]), np.lexsort(keys[::-1]))


@pytest.mark.parametrize("shuffled", [False, True])
def test_large_results_in_pieces_are_what_small_ones_are(
    shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gathered and computed a thousand rows at a time, with nulls, texts and scores."""
    rng = np.random.default_rng(9)
    n = 700
    vectors = pa.FixedSizeListArray.from_arrays(rng.random(4 * n), 4)
    times = np.sort(rng.integers(0, 500, n))
    at = rng.permutation(n) if shuffled else np.arange(n)
    table = pa.table(
        {
            "t": times,
            "k": rng.integers(0, 5, n),
            "x": pa.array(rng.random(n), mask=rng.random(n) < 0.1),
            "s": [f"text {i}" for i in range(n)],
            "v": vectors,
        }
    ).take(at)
    a, b = (wj.stream(name, time="t", window=30) for name in "ab")
    distance = wj.l2(a["v"], b["v"])
    chosen = [a["s"], b["x"], (a["x"] * b["k"] + 1).alias("y"), distance.alias("d")]
    query = wj.join(a, b, on=[a["k"] == b["k"], distance <= 10.0], select=chosen)
    tables = {"a": table, "b": table}
    whole = query.run(tables, threads=1, ordered=True)
    assert whole.num_rows > 5000
    monkeypatch.setattr("windjoin.output.LEAST_AT_ONCE", 100)
    monkeypatch.setattr("windjoin.output.MOST_AT_ONCE", 1000)
    for threads in (1, 2):
        pieces = query.run(tables, threads=threads, ordered=True)
        assert min(column.num_chunks for column in pieces.columns) > 4
        assert pieces.combine_chunks().equals(whole.combine_chunks())


def test_an_error_in_a_later_piece_tells_the_row_of_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = (wj.stream(name, time="t", window=0) for name in "ab")
    query = wj.join(a, b, on=a["t"] == b["t"], select=(a["k"] * b["k"]).alias("p"))
    n = 3000
    k = np.ones(n, np.int64)
    k[2500] = 2**40
    tables = dict.fromkeys("ab", pa.table({"t": np.arange(n), "k": k}))
    with pytest.raises(wj.DataError, match="result row 2500: value") as whole:
        query.run(tables, threads=1, ordered=True)
    monkeypatch.setattr("windjoin.output.MOST_AT_ONCE", 1000)
    with pytest.raises(wj.DataError, match="result row 2500: value") as pieces:
        query.run(tables, threads=1, ordered=True)
    assert str(pieces.value) == str(whole.value)
