"""What a query keeps from one run for the next: its binding, and the plan of two small tables."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.arrow import blocks, joiner
from windjoin.kernels import batch

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
