"""The fast path of vectors and images into a session differs from the general path in nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.kernels.live import LiveJoin

from tests.both_ways import differs_in_nothing

TYPES = {"float32": pa.float32(), "float64": pa.float64(), "uint8": pa.uint8()}


def pushes(seed: int, item: pa.DataType, pieces: int) -> list[tuple[str, pa.Table]]:
    """Slices of one table per stream; some with nulls or NaN, some late."""
    random = np.random.default_rng(seed)
    found, now = [], 0
    for number in range(pieces):
        n = int(random.choice([1, 2, 7, 60]))
        rows: list[Any] = random.integers(0, 9, (n + 2, 5)).tolist()
        if random.random() < 0.15:
            rows[1] = None
        if random.random() < 0.15 and item != pa.uint8():
            rows[n] = [1.0, float("nan"), 2.0, 3.0, 4.0]
        times = now + np.sort(random.integers(0, 12, n))
        if random.random() < 0.15:
            times[: n // 2] -= 30
        now += 4
        column = pa.array(rows, pa.list_(item, 5)).slice(1, n)
        found.append(("abc"[number % 3], pa.table({"t": times, "v": column})))
    return found


def query() -> wj.Query:
    """Three streams of vectors, all near each other."""
    a, b, c = (wj.stream(n, time="t", window=w) for n, w in zip("abc", (40, 25, 60), strict=True))
    on = [wj.l2(a["v"], b["v"]) <= 7, wj.l1(b["v"], c["v"]) <= 12, wj.l2(a["v"], c["v"]) < 8]
    return wj.join(a, b, c, on=on)


@pytest.mark.parametrize("item", TYPES.values(), ids=TYPES.keys())
@pytest.mark.parametrize("seed", range(3))
def test_both_ways_return_and_count_the_same(seed: int, item: pa.DataType) -> None:
    come = pushes(seed, item, 30)
    assert differs_in_nothing(query(), come, seed % 2 * 8) > 0


@pytest.mark.parametrize("item", TYPES.values(), ids=TYPES.keys())
def test_plain_vectors_go_the_short_way(item: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"t": [1, 2], "v": pa.array([[1, 2], [7, 2]], pa.list_(item, 2))})
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    query = wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 1)
    with query.open(schemas={"a": rows.schema, "b": rows.schema}, rows_only=True) as session:
        monkeypatch.setattr(LiveJoin, "push", None)  # the general path would fail
        assert len(session.push("a", rows)["a"]) == 0
        found = session.push("b", rows)
        pairs = sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
        assert pairs == [(0, 0), (1, 1)]


@pytest.mark.parametrize("item", TYPES.values(), ids=TYPES.keys())
def test_matrices_go_the_short_way(item: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    dtype = item.to_pandas_dtype()
    rows = {"t": np.array([1, 2]), "v": np.array([[1, 2], [7, 2]], dtype), "more": np.ones((2, 3))}
    schema = pa.schema({"t": pa.int64(), "v": pa.list_(item, 2)})
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    asked = wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 1)
    with asked.open(schemas={"a": schema, "b": schema}, rows_only=True) as session:
        monkeypatch.setattr(LiveJoin, "push", None)  # the general path would fail
        assert len(session.push("a", rows)["a"]) == 0
        rows["v"][:] = 99  # what came is the session's own
        found = session.push("b", {**rows, "v": np.array([[1, 2], [7, 2]], dtype)})
        pairs = sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
        assert pairs == [(0, 0), (1, 1)]


@pytest.mark.parametrize("seed", range(3))
def test_matrices_that_need_a_second_look_are_joined_too(seed: int) -> None:
    random = np.random.default_rng(seed)
    schema = pa.schema({"t": pa.int64(), "v": pa.list_(pa.float32(), 4)})
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    asked = wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 4)
    found = []
    for matrices in (True, False):
        random = np.random.default_rng(seed)
        pairs = []
        with asked.open(schemas={"a": schema, "b": schema}, rows_only=True) as session:
            for step in range(40):
                values = random.integers(0, 5, (7, 4)).astype(np.float32)
                if step % 5 == 0:
                    values[3, 1] = np.nan
                form = [values, np.asfortranarray(values), np.repeat(values, 2, axis=1)[:, ::2]]
                rows: Any = {"t": np.arange(7) + 3 * step, "v": form[step % 3]}
                if not matrices:
                    rows["v"] = pa.array(values.tolist(), pa.list_(pa.float32(), 4))
                out = session.push("ab"[step % 2], rows)
                pairs += zip(out["a"].tolist(), out["b"].tolist(), strict=True)
        found.append(sorted(pairs))
    assert found[0] == found[1]
    assert len(found[0]) > 100
