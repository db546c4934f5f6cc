"""The fast path of sets into a session differs from the general path in nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.kernels.live import LiveJoin

from tests.both_ways import differs_in_nothing

INTEGERS = {"int32": pa.int32(), "int64": pa.int64(), "dates": pa.date64()}


def query(three: bool) -> wj.Query:
    """Two streams of sets, or three of which one has keys."""
    a, b, c = (wj.stream(n, time="t", window=w) for n, w in zip("abc", (40, 25, 60), strict=True))
    on: list[Any] = [wj.overlap(a["s"], b["s"]) >= 2]
    if not three:
        return wj.join(a, b, on=on)
    return wj.join(a, b, c, on=[*on, wj.jaccard(b["s"], c["s"]) > 0.2, a["k"] == c["k"]])


def pushes(seed: int, names: str, items: pa.DataType, pieces: int) -> list[tuple[str, pa.Table]]:
    """Slices of one table per stream; some with nulls, some late, items that never came before."""
    random = np.random.default_rng(seed)
    found, now = [], 0
    for number in range(pieces):
        n = int(random.choice([1, 2, 7, 60, 300]))
        sets: list[Any] = [
            (random.integers(0, 30, random.integers(0, 7)) + 9 * number).tolist() for _ in range(n)
        ]
        if random.random() < 0.15:
            sets[0] = None
        if random.random() < 0.15:
            sets[-1] = [1, None, 2]
        times = now + np.sort(random.integers(0, 12, n))
        if random.random() < 0.15:
            times[: n // 2] -= 30
        now += 4
        columns = {"t": times, "k": random.integers(0, 3, n)}
        column = pa.array([[0], *sets, [1]], pa.list_(pa.int64()))
        if items != pa.int64():
            column = column.cast(pa.list_(items)) if items != pa.date64() else _dates(column)
        rows = pa.table({**columns, "s": column.slice(1, n)})
        found.append((names[number % len(names)], rows))
    return found


def _dates(column: Any) -> Any:
    milliseconds = pa.compute.multiply(column.values, 86_400_000).cast(pa.timestamp("ms"))
    return pa.ListArray.from_arrays(column.offsets, milliseconds.cast(pa.date64()))


@pytest.mark.parametrize("items", INTEGERS.values(), ids=INTEGERS.keys())
@pytest.mark.parametrize("three", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_both_ways_return_and_count_the_same(seed: int, three: bool, items: pa.DataType) -> None:
    come = pushes(seed, "abc" if three else "ab", items, 30)
    assert differs_in_nothing(query(three), come, seed % 2 * 8) > 0


def test_plain_sets_go_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"t": [1, 2, 3], "s": [[1, 2], [2, 3, 2], []]})
    schemas = {"a": rows.schema, "b": rows.schema}
    with query(False).open(schemas=schemas, rows_only=True) as session:
        monkeypatch.setattr(LiveJoin, "push", None)  # the general path would fail
        assert len(session.push("a", rows.slice(0, 2))["a"]) == 0
        found = session.push("b", rows)
        assert sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == [
            (0, 0), (1, 1),
        ]  # fmt: skip
        held = session.state_bytes
        for now in range(100, 40_000, 100):
            for name in "ab":
                session.push(name, pa.table({"t": [now] * 3, "s": [[now], [now + 1], [now, 7]]}))
        assert sum(s["state_rows"] for s in session.metrics["streams"].values()) <= 12
        assert session.state_bytes < 8 * held
