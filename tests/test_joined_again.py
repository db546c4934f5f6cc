"""What a query keeps from one run for the next: its binding, and the plan of two small tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.kernels import batch
from windjoin.pyx.tables import Reader

A, B, C = (wj.stream(name, time="t", window=50) for name in "abc")


def rows(seed: int, count: int = 300) -> pa.Table:
    random = np.random.default_rng(seed)
    columns = {"t": np.arange(count), "k": random.integers(0, 9, count), "x": random.random(count)}
    return pa.table({**columns, "s": random.integers(0, 9, (count, 3)).tolist()})


def plans(query: wj.Query, monkeypatch: pytest.MonkeyPatch, *runs: dict[str, Any]) -> list[int]:
    """How many plans every run makes; its results must be those of a query that never ran."""
    made: list[Any] = []
    best = batch.best_order
    monkeypatch.setattr(batch, "best_order", lambda *given: made.append(given) or best(*given))
    counts = []
    for tables in runs:
        before = len(made)
        found = query.indices(tables)
        counts.append(len(made) - before)
        fresh = wj.join(*query.streams, on=query.on).indices(tables)
        for name in query.names:
            assert np.array_equal(found[name], fresh[name])
    return counts


def test_two_small_tables_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    query = wj.join(A, B, on=[A["k"] == B["k"], wj.overlap(A["s"], B["s"]) >= 2, A["x"] < B["x"]])
    small = [{"a": rows(n), "b": rows(n + 50)} for n in range(3)]
    shorter = {"a": rows(7, 149), "b": rows(8)}  # not half as many rows of one
    large = {"a": rows(9, 2100), "b": rows(10)}
    assert plans(query, monkeypatch, *small, shorter, shorter, large, large) == [
        1, 0, 0, 1, 0, 1, 1,
    ]  # fmt: skip


def test_three_streams_and_conditions_that_hold_data_are_planned_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    three = wj.join(A, B, C, on=[A["k"] == B["k"], B["k"] == C["k"]])
    tables = {name: rows(n) for n, name in enumerate("abc")}
    assert plans(three, monkeypatch, tables, tables) == [1, 1]
    either = wj.join(A, B, on=(A["k"] == B["k"]) | (A["x"] < B["x"]))
    some = [{"a": rows(n), "b": rows(n + 9)} for n in range(2)]
    assert plans(either, monkeypatch, *some) == [1, 1]


def test_other_schemas_are_bound_anew() -> None:
    query = wj.join(A, B, on=A["k"] == B["k"])
    first = {"a": rows(1), "b": rows(2)}
    query.run(first)
    bound = query.last[0].bound
    query.run({"a": rows(3), "b": rows(4)})
    assert query.last[0].bound is bound
    as_text = {n: t.set_column(1, "k", t["k"].cast(pa.string())) for n, t in first.items()}
    assert query.run(as_text).schema.field("a_k").type == pa.string()
    assert query.last[0].bound is not bound
    noted = {n: t.replace_schema_metadata({"by": "me"}) for n, t in first.items()}
    query.run(noted)
    assert query.last[0].bound.schemas["a"].metadata == {b"by": b"me"}
    with pytest.raises(wj.SchemaError, match="no data for stream 'b'"):
        query.run({"a": first["a"]})


def reader(width: int = 0, dtype: Any = np.int64, number: int = 0) -> Reader:
    return Reader([(number, np.dtype(dtype), width)])


def test_a_reader_gives_what_lies_in_memory_and_nothing_else() -> None:
    table = pa.table({"x": range(10)})
    (found,) = reader().read(table.slice(3, 4)) or []
    assert found.tolist() == [3, 4, 5, 6]
    assert not found.flags.writeable
    assert reader().read(table.to_batches()[0]) is not None
    assert reader().read(table.slice(0, 0)) is None
    assert reader().read(pa.concat_tables([table, table])) is None
    with_null = pa.table({"x": [1, None, 3]})
    assert reader().read(with_null) is None
    (after,) = reader().read(with_null.slice(2)) or []
    assert after.tolist() == [3]
    assert reader(dtype=np.float64).read(pa.table({"x": [1.0, np.nan]})) is None
    assert reader(dtype=np.float64).read(pa.table({"x": [1.0, 2.0]})) is not None


def test_a_reader_gives_lists_and_vectors_with_their_offsets() -> None:
    lists = pa.table({"s": [[9], [1, 2], [], [3]]})
    ((offsets, items),) = reader(-1).read(lists.slice(1)) or []
    pieces = [items[i:j].tolist() for i, j in pairwise(offsets)]
    assert pieces == [[1, 2], [], [3]]
    assert reader(-1).read(pa.table({"s": [[1], None]})) is None
    assert reader(-1).read(pa.table({"s": [[1], [None]]})) is None
    vectors = pa.table({"v": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))})
    ((offsets, values),) = reader(2, np.float32).read(vectors.slice(1)) or []
    assert (offsets.tolist(), values.tolist()) == ([0, 2, 4], [3, 4, 5, 6])
    holes = pa.table({"v": pa.array([[1, None], None], pa.list_(pa.float32(), 2))})
    assert reader(2, np.float32).read(holes) is None
    assert reader(2, np.float32).read(holes.slice(1)) is None
    nan = pa.table({"v": pa.array([[1, np.nan]], pa.list_(pa.float32(), 2))})
    assert reader(2, np.float32).read(nan) is None


def test_a_reader_takes_few_columns_of_wide_tables() -> None:
    wide = pa.table({f"c{n}": [n, n + 1] for n in range(40)})
    (found,) = reader(number=33).read(wide) or []
    assert found.tolist() == [33, 34]
