"""What comes out of a session is the user's, and what went in too: neither changes the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

from tests.pushed_tables import HOSTS, ROWS, holey, in_session, query

COUNT = 40
MANY = pytest.param(10**6, None, marks=pytest.mark.slow)  # hosts take a quarter of an hour


def mutable() -> tuple[pa.Table, list[np.ndarray[Any, Any]]]:
    """A table of every layout over memory that can be written, and that memory."""
    memory: list[np.ndarray[Any, Any]] = []

    def buffer(values: Any, dtype: Any) -> pa.Buffer:
        memory.append(np.array(values, dtype))
        return pa.py_buffer(memory[-1])

    def array(arrow: pa.DataType, *buffers: Any, children: Any = None) -> pa.Array:
        return pa.Array.from_buffers(arrow, COUNT, list(buffers), children=children)

    ends = np.arange(COUNT + 1)
    bits = np.full(COUNT // 8 + 1, 0b10110111)
    items = pa.Array.from_buffers(pa.int64(), 2 * COUNT, [None, buffer(range(2 * COUNT), "i8")])
    half = pa.Array.from_buffers(pa.float32(), 2 * COUNT, [None, buffer(np.ones(2 * COUNT), "f4")])
    text = np.frombuffer(b"abc" * COUNT, "u1")
    return pa.table(
        {
            "t": array(pa.int64(), None, buffer(range(COUNT), "i8")),
            "k": array(pa.int64(), None, buffer(np.arange(COUNT) % 7, "i8")),
            "d": array(pa.float64(), buffer(bits, "u1"), buffer(np.arange(COUNT) / 4, "f8")),
            "i": array(pa.int32(), buffer(bits, "u1"), buffer(range(COUNT), "i4")),
            "bit": array(pa.bool_(), None, buffer(bits, "u1")),
            "s": array(pa.string(), buffer(bits, "u1"), buffer(3 * ends, "i4"), buffer(text, "u1")),
            "l": array(pa.list_(pa.int64()), None, buffer(2 * ends, "i4"), children=[items]),
            "v": array(pa.list_(pa.float32(), 2), None, children=[half]),
        }
    ), memory


@pytest.mark.parametrize(("pushes", "hosts"), [(3_000, None), (3_000, 2), MANY])
def test_results_stay_what_they_were(pushes: int, hosts: int | None) -> None:
    """The caller writes into what it pushed, and pages serve again and again."""
    table, memory = mutable()
    other, _ = mutable()
    a, b = (wj.stream(name, time="t", window=COUNT) for name in "ab")
    joined = wj.join(a, b, on=a["k"] == b["k"])
    expected = joined.run({"a": other, "b": other}).to_pylist()
    one = pa.table({"t": pa.array([0]), "k": pa.array([0])})
    with joined.open(dict.fromkeys("ab", table.schema), hosts=hosts) as session:
        found = [session.push("a", table), session.push("b", table)]
        for values in memory:
            values[...] = 0
        for name in "ab":
            session.advance(name, 10 * COUNT)
        later = other.slice(0, 1)
        found.append(session.push("a", later.set_column(0, "t", pa.array([20 * COUNT]))))
        found.append(session.push("b", later.set_column(0, "t", pa.array([20 * COUNT]))))
        results = pa.concat_tables(found)
        known = results.filter(pa.array(np.array(results["a_t"]) < COUNT))
        first = known.to_pylist()
        assert sorted(map(str, first)) == sorted(map(str, expected))
        for n in range(pushes // 2):
            moved = one.set_column(0, "t", pa.array([21 * COUNT + n]))
            rows = later.set_column(0, "t", moved["t"])
            session.push("a", rows)
            session.push("b", rows)
    del session
    assert known.to_pylist() == first


@HOSTS
@pytest.mark.parametrize("size", [7, 130])
def test_empty_batches_between_others_change_nothing(size: int, hosts: int | None) -> None:
    tables = {name: holey(seed) for seed, name in enumerate("ab")}
    expected = in_session(query(), tables, size, hosts=hosts)
    schemas = {name: table.schema for name, table in tables.items()}
    found = []
    with query().open(schemas, lateness=9, on_late="keep", hosts=hosts) as session:
        for start in range(0, ROWS, size):
            for name, table in tables.items():
                some, nothing = table.slice(start, size), table.slice(0, 0)
                found.append(session.push(name, nothing))
                found.append(session.push(name, nothing.combine_chunks()))
                found.append(session.push(name, pa.RecordBatch.from_pylist([], table.schema)))
                found.append(session.push_many({"a": tables["a"].slice(0, 0), name: nothing}))
                parts = [nothing, some.slice(0, 3), nothing, some.slice(3), nothing]
                found.append(session.push(name, pa.concat_tables(parts)))
        metrics = session.metrics
        found.append(session.close())
    assert metrics["rows_in"] == 2 * ROWS
    assert sorted(str(row) for out in found for row in out.to_pylist()) == expected


@HOSTS
def test_sessions_that_are_abandoned_leave_what_they_gave(hosts: int | None) -> None:
    tables = {name: holey(seed) for seed, name in enumerate("ab")}
    schemas = {name: table.schema for name, table in tables.items()}
    whole = in_session(query(), tables, 50, hosts=hosts)
    for stop in (1, 3, 6):
        found = []
        session = query().open(schemas, lateness=9, on_late="keep", hosts=hosts)
        for start in range(0, stop * 50, 50):
            for name, table in tables.items():
                found.append(session.push(name, table.slice(start, 50)))
        session.abandon()
        with pytest.raises(wj.SessionError, match="closed"):
            session.push("a", tables["a"])
        del session
        some = [str(row) for out in found for row in out.to_pylist()]
        assert len(set(some)) == len(some)
        assert set(some) <= set(whole)
    assert in_session(query(), tables, 50, hosts=hosts) == whole
