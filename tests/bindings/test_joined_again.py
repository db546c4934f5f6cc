"""What a query keeps from one run for the next: its binding, and the plan of two small tables."""

from __future__ import annotations

import pickle
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.arrow import blocks, joiner
from windjoin.kernels import batch
from windjoin.pyx.arrow.tables import Reader

A, B, C = (wj.stream(name, time="t", window=50) for name in "abc")


def rows(seed: int, count: int = 300) -> pa.Table:
    random = np.random.default_rng(seed)
    columns = {"t": np.arange(count), "k": random.integers(0, 9, count), "x": random.random(count)}
    return pa.table({**columns, "s": random.integers(0, 9, (count, 3)).tolist()})


def last(query: wj.Query) -> Any:
    return query.runs.last()


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


def test_three_streams_are_planned_anew_and_conditions_that_hold_data_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    three = wj.join(A, B, C, on=[A["k"] == B["k"], B["k"] == C["k"]])
    tables = {name: rows(n) for n, name in enumerate("abc")}
    assert plans(three, monkeypatch, tables, tables) == [1, 1]
    either = wj.join(A, B, on=(A["k"] == B["k"]) | (A["x"] < B["x"]))
    some = [{"a": rows(n), "b": rows(n + 9)} for n in range(2)]
    assert plans(either, monkeypatch, *some) == [1, 0]


def test_slices_of_a_block_are_planned_once_while_they_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "FIRST_SLICE", 250)
    monkeypatch.setattr(blocks, "GROWTH", 1)
    made: list[Any] = []
    best = batch.best_order
    monkeypatch.setattr(batch, "best_order", lambda *given: made.append(given) or best(*given))
    query = wj.join(A, B, C, on=[A["k"] == B["k"], (B["x"] < C["x"]) | (B["k"] == C["k"])])
    tables = {name: rows(n, 2000) for n, name in enumerate("abc")}
    join = joiner(query, stream_column="n", schemas={n: t.schema for n, t in tables.items()})
    named = [t.append_column("n", pa.array([n] * len(t))) for n, t in tables.items()]
    found = sum(len(some) for some in join(pa.concat_tables(named).to_batches()))
    assert len(made) <= 2  # the first rows have half a window before them
    assert found == len(query.indices(tables)["a"])


def test_rows_unlike_those_planned_for_are_planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    query = wj.join(A, B, on=A["k"] == B["k"])
    query.indices({"a": rows(1), "b": rows(2)})
    run = last(query).run
    assert run.as_expected
    assert run.serves((300, 600))
    assert not run.serves((300, 601))
    run.hops = [{"proposed": 10**6}]
    assert not run.as_expected


def test_threads_see_their_own_runs() -> None:
    query = wj.join(A, B, on=A["k"] == B["k"])
    assert query.metrics["rows_in"] == query.metrics["streams"]["a"]["joinable"] == 0
    seen: dict[int, Any] = {}
    go = threading.Barrier(3)

    def work(count: int) -> None:
        tables = {"a": rows(1, count), "b": rows(2, count)}
        for _ in range(20):
            query.run(tables)
            go.wait()  # others have run meanwhile
            seen[count] = query.metrics["rows_in"], query.explain("json")["metrics"]["rows_in"]
            go.wait()
            assert seen[count] == (2 * count, 2 * count)

    threads = [threading.Thread(target=work, args=(count,)) for count in (10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [10, 20, 30]
    assert query.metrics["rows_in"] in (20, 40, 60)  # this thread has run none: the last of any
    assert pickle.loads(pickle.dumps(query)).metrics["rows_in"] == 0


def test_other_schemas_are_bound_anew() -> None:
    query = wj.join(A, B, on=A["k"] == B["k"])
    first = {"a": rows(1), "b": rows(2)}
    query.run(first)
    bound = last(query).bound
    query.run({"a": rows(3), "b": rows(4)})
    assert last(query).bound is bound
    as_text = {n: t.set_column(1, "k", t["k"].cast(pa.string())) for n, t in first.items()}
    assert query.run(as_text).schema.field("a_k").type == pa.string()
    assert last(query).bound is not bound
    noted = {n: t.replace_schema_metadata({"by": "me"}) for n, t in first.items()}
    query.run(noted)
    assert last(query).bound.schemas["a"].metadata == {b"by": b"me"}
    with pytest.raises(wj.SchemaError, match="no data for stream 'b'"):
        query.run({"a": first["a"]})


def reader(
    form: str = "as they lie", size: int = 8, dtype: Any = np.int64, number: int = 0
) -> Reader:
    return Reader([(number, form, size, np.dtype(dtype))])


def test_a_reader_gives_what_lies_in_memory() -> None:
    table = pa.table({"x": range(10)})
    (found,), timed, usable = reader().read(table.slice(3, 4)) or []
    assert found.tolist() == [3, 4, 5, 6]
    assert timed is usable is None
    assert not found.flags.writeable
    assert reader().read(table.to_batches()[0]) is not None
    assert reader().read(table.slice(0, 0)) is None
    assert reader().read(pa.concat_tables([table, table])) is None


def test_a_reader_tells_nulls_and_nan() -> None:
    table = pa.table({"t": [1, None, 3, 4], "x": [0.5, 1.0, np.nan, None]})
    both = [(0, "as they lie", 8, np.dtype("i8")), (1, "as they lie", 8, np.dtype("f8"))]
    (times, numbers), timed, usable = Reader(both).read(table) or []
    assert timed.tolist() == [True, False, True, True]
    assert usable.tolist() == [True, False, False, False]
    assert (times[0], numbers[0]) == (1, 0.5)
    _, timed, usable = Reader(both).read(table.slice(2)) or []
    assert timed is None
    assert usable.tolist() == [False, False]
    assert Reader(both).read(table.slice(0, 1))[1:] == (None, None)


@pytest.mark.parametrize(
    ("arrow", "form", "dtype"),
    [
        *((arrow, "integers", "i8") for arrow in (pa.int8(), pa.int16(), pa.int32(), pa.date32())),
        *((arrow, "naturals", "i8") for arrow in (pa.uint8(), pa.uint16(), pa.uint32())),
        (pa.float32(), "reals", "f8"),
        *((arrow, "decimals", "i8") for arrow in (pa.decimal128(12, 0), pa.decimal256(12, 0))),
    ],
)
def test_a_reader_widens_numbers(arrow: pa.DataType, form: str, dtype: str) -> None:
    least = 0 if form == "naturals" else -7
    given = pa.array([5, least, None, 100], pa.int32()).cast(arrow)
    read = reader(form, arrow.bit_width // 8, dtype).read(pa.table({"x": given}).slice(1))
    (found,), _, usable = read or []
    assert usable.tolist() == [True, False, True]
    assert found.dtype == dtype
    assert found[[0, 2]].tolist() == [least, 100]


@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_a_reader_gives_texts_with_their_offsets(arrow: pa.DataType) -> None:
    given = pa.table({"x": pa.array(["a", "bc", None, "", "def"], arrow)})
    texts = reader("texts", 8 if pa.types.is_large_string(arrow) else 4, np.uint8)
    ((offsets, data),), _, usable = texts.read(given.slice(1)) or []
    assert usable.tolist() == [True, False, True, True]
    pieces = [data[i:j].tobytes() for i, j in pairwise(offsets)]
    assert pieces == [b"bc", b"", b"", b"def"]
    ((offsets, data),), _, _ = texts.read(given.slice(3, 1)) or []
    assert offsets[0] == offsets[1]


def test_a_reader_gives_lists_and_vectors_with_their_offsets() -> None:
    sets, pairs = reader("lists"), reader("vectors", 2, np.float32)
    lists = pa.table({"s": [[9], [1, 2], [], [3]]})
    ((offsets, items),), _, _ = sets.read(lists.slice(1)) or []
    pieces = [items[i:j].tolist() for i, j in pairwise(offsets)]
    assert pieces == [[1, 2], [], [3]]
    assert sets.read(pa.table({"s": [[1], None]})) is None
    assert sets.read(pa.table({"s": [[1], [None]]})) is None
    vectors = pa.table({"v": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2))})
    ((offsets, values),), _, _ = pairs.read(vectors.slice(1)) or []
    assert (offsets.tolist(), values.tolist()) == ([0, 2, 4], [3, 4, 5, 6])
    holes = pa.table({"v": pa.array([[1, None], None], pa.list_(pa.float32(), 2))})
    assert pairs.read(holes) is None
    assert pairs.read(holes.slice(1)) is None
    nan = pa.table({"v": pa.array([[1, np.nan]], pa.list_(pa.float32(), 2))})
    assert pairs.read(nan) is None


def test_a_reader_takes_few_columns_of_wide_tables() -> None:
    wide = pa.table({f"c{n}": [n, n + 1] for n in range(40)})
    (found,), _, _ = reader(number=33).read(wide) or []
    assert found.tolist() == [33, 34]
