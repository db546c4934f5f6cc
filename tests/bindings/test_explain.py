"""What decides how rows are joined, beside the query, is told by ``explain``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.pyx.base.cpu import isa

A, B, C = (wj.stream(name, time="t", window=10) for name in "abc")
QUERY = wj.join(A, B, on=A["k"] == B["k"])


def test_hosts_plan_from_samples_and_tell_what_they_do():
    a, b = (wj.stream(name, time="t", window=50) for name in "ab")
    query = wj.join(a, b, on=wj.overlap(a["s"], b["s"]) >= 1)
    some = pa.table({"t": range(400), "s": [[n] for n in range(400)]})
    with_one_thread = query.run({"a": some, "b": some})
    threaded = query.explain("json")["order"]["steps"][0]
    assert query.run({"a": some, "b": some}, hosts=2).num_rows == with_one_thread.num_rows
    ways = query.explain("json")["cluster"]["ways"]
    assert [way["bound"] for way in ways] == [["a"], ["b"]]
    steps = [way["steps"][0] for way in ways]
    assert {step["index"] for step in steps} == {threaded["index"]} == {"item lists"}
    assert sum(step["measured"]["kept"] for step in steps) == with_one_thread.num_rows
    assert "hosts extend rows of a\n    1. b through item lists" in query.explain()


def rows(count: int, step: int = 1) -> pa.Table:
    times = np.arange(count, dtype=np.int64)
    return pa.table({"t": times, "k": times * step, "x": times * 0.5})


def told(query: Any, tables: dict[str, pa.Table], **options: Any) -> tuple[Any, str]:
    """What a run tells to programs and to people."""
    query.run(tables, **options)
    data = query.explain("json")
    assert json.loads(json.dumps(data)) == data
    return data, query.explain()


def opened(query: Any, table: pa.Table, names: str = "ab") -> tuple[Any, str]:
    with query.open(dict.fromkeys(names, table.schema)) as session:
        for name in names:
            session.push(name, table)
        return session.explain("json"), session.explain()


@pytest.mark.parametrize("step", [1, 10**9])
def test_keys_that_lie_close_together_are_told(step: int) -> None:
    key = {"of": 'a["k"] == b["k"]', "close_together": step == 1}
    line = 'keys of a["k"] == b["k"] lie close together: found in an array'
    for data, text in (
        told(QUERY, {"a": rows(5000, step), "b": rows(5000, step)}),
        opened(QUERY, rows(5000, step)),
    ):
        assert data["keys"] == [key]
        assert (line in text) == (step == 1)


def test_what_an_index_is_kept_as_is_told() -> None:
    table = rows(100)
    data, text = told(QUERY, {"a": table, "b": table})
    assert data["kept_as"] == [[["CsrPostings"]]]
    assert "     kept as CsrPostings" in text
    data, text = opened(QUERY, table)
    assert data["kept_as"] == [[["CacheLineIndex"]]] * 2
    assert "     kept as CacheLineIndex" in text


def test_a_plan_taken_from_the_run_before_is_told() -> None:
    query = wj.join(A, B, on=A["k"] == B["k"])
    tables = {"a": rows(100), "b": rows(100)}
    assert told(query, tables)[0]["plan"] == "of these rows"
    data, text = told(query, tables)
    assert data["plan"] == "of the run before"
    assert "plan: of the run before, which had about as many rows" in text
    many = {"a": rows(10_000), "b": rows(10_000)}
    assert told(query, many)[0]["plan"] == "of these rows"


def test_start_rows_taken_key_by_key_are_told() -> None:
    query = wj.join(A, B, C, on=[A["k"] == B["k"], B["k"] == C["k"]])
    data, text = told(query, dict.fromkeys("abc", rows(100)))
    assert data["start_rows"] == "key by key"
    assert "rows of the first stream are taken key by key" in text
    assert told(QUERY, {"a": rows(100), "b": rows(100)})[0]["start_rows"] == "in order of time"


def test_how_rows_come_in_is_told() -> None:
    data, text = opened(QUERY, rows(10))
    assert [(s["as_they_lie"], s["in_blocks"]) for s in data["streams"]] == [(True, True)] * 2
    assert "a: time t, window 10\n    rows are taken as they lie, in blocks\n" in text
    two = wj.join(A, B, on=[A["k"] == B["k"], A["x"] < B["x"]])
    data, text = opened(two, rows(10))
    assert [(s["as_they_lie"], s["in_blocks"]) for s in data["streams"]] == [(True, False)] * 2
    assert "a: time t, window 10\n    rows are taken as they lie\n" in text
    computed = wj.join(A, B, on=A["k"] + 1 == B["k"])
    data, text = told(computed, {"a": rows(10), "b": rows(10)})
    assert [stream["as_they_lie"] for stream in data["streams"]] == [False, True]
    assert "a: time t, window 10\n    columns are computed first\n" in text


def test_threads_parts_and_the_processor_are_told() -> None:
    tables = {"a": rows(1000), "b": rows(1000)}
    data, text = told(wj.join(A, B, on=A["k"] == B["k"]), tables, threads=2)
    assert (data["threads"], data["processor"]) == (2, isa())
    assert data["parts"]["of"] == "time"
    assert f"processor: {isa()}\nthreads: 2" in text


def test_hosts_and_sessions_without_rows_tell_what_they_know() -> None:
    tables = {"a": rows(50), "b": rows(50)}
    assert "strategy" in told(wj.join(A, B, on=A["k"] == B["k"]), tables, hosts=2)[1]
    schema = rows(0).schema
    with QUERY.open({"a": schema, "b": schema}, hosts=2) as session:
        assert [stream["in_blocks"] for stream in session.explain("json")["streams"]] == [False] * 2
    with QUERY.open() as session:
        assert "as_they_lie" not in session.explain("json")["streams"][0]
