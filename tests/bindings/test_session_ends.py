"""How a session ends: closed, broken off, or not at all because nothing was taken."""

from __future__ import annotations

import contextlib
import gc
import pkgutil
import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

CLOSED = "this session is closed; open a new one with Query.open"
BROKEN_OFF = (
    "this session ended when a push into it was broken off: results may be missing;"
    " open a new one with Query.open"
)
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])


def query(window: int = 10) -> wj.Query:
    a, b = (wj.stream(name, time="t", window=window) for name in ("a", "b"))
    return wj.join(a, b, on=a["k"] == b["k"])


def row(t: int, k: int = 1) -> dict[str, list[int]]:
    return {"t": [t], "k": [k]}


def assert_ended(session: Any, why: str) -> None:
    for use in (
        lambda: session.push("a", row(9)),
        lambda: session.advance("a", 9),
        lambda: session.finish("a"),
    ):
        with pytest.raises(wj.SessionError, match=f"^{re.escape(why)}$"):
            use()


@pytest.mark.parametrize("rows_only", [False, True])
def test_columns_that_only_pairs_or_results_need_are_checked_too(rows_only: bool):
    a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    either = wj.join(a, b, on=(a["k"] == b["k"]) | (a["j"] < b["k"]), select=[a["p"], b["t"]])
    table = {"t": [1], "k": [1], "j": [3], "p": ["x"]}
    with either.open(rows_only=rows_only) as session:
        session.push("a", table)
        session.push("b", row(2))
        for name in ("j", "p")[: 1 if rows_only else 2]:
            other = pa.table(table).drop_columns([name])
            with pytest.raises(wj.SchemaError, match=f"stream 'a' has no column '{name}'"):
                session.push("a", other)
            message = f"stream 'a': column '{name}' is bool but the query was bound to"
            with pytest.raises(wj.SchemaError, match=message):
                session.push("a", other.append_column(name, pa.array([True])))
        assert len(session.push("a", table)) == (2 if rows_only else 1)


def test_batches_may_promise_different_things_about_nulls():
    promise = pa.schema([pa.field(f.name, f.type, nullable=False) for f in SCHEMA])
    with query().open() as session:
        session.push("a", row(1))
        session.push("b", row(1))
        session.push("a", pa.table(row(2), schema=promise))
        assert session.push("b", row(3))["a_t"].to_pylist() == [1, 2]


def test_a_closed_session_takes_nothing_and_keeps_its_counters():
    with query().open({"a": SCHEMA, "b": SCHEMA}) as session:
        session.push("a", row(1))
        session.push("b", {"t": [2, None], "k": [1, 1]})
        before = session.metrics
        assert session.close().num_rows == 0
        assert_ended(session, CLOSED)
    assert session.metrics == before
    assert (before["results"], before["rejected"]) == (1, 1)
    assert session.rejected["b"].num_rows == 1
    assert session.state_bytes == 0


def test_closing_twice_is_closing_once():
    session = query().open({"a": SCHEMA, "b": SCHEMA})
    first, second = session.close(), session.close()
    assert first.schema == second.schema
    assert first.schema.names == ["a_t", "a_k", "b_t", "b_k"]
    assert_ended(session, CLOSED)


def test_refused_rows_leave_the_session_as_it_was():
    a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    doubled = wj.join(a, b, on=a["k"] * 2 == b["k"])
    with doubled.open({"a": SCHEMA, "b": SCHEMA}) as session:
        session.push("b", row(1, k=10))
        state = session.state_bytes
        for rows, error in (
            ({"t": [2], "k": ["x"]}, wj.SchemaError),
            ({"t": [2]}, wj.SchemaError),
            (row(2, k=2**62), wj.DataError),
            (3, wj.InputError),
        ):
            with pytest.raises(error):
                session.push("a", rows)
        assert session.metrics["rows_in"] == 1
        assert session.state_bytes == state
        assert session.push("a", row(3, k=5)).num_rows == 1


@pytest.mark.parametrize(
    ("where", "short"),
    [
        ("windjoin.kernels.live.LiveJoin.push", False),
        ("windjoin.session.Session._results", False),
        ("windjoin.session_opening.numbered", True),
        ("windjoin.rejected.Rejected._add", True),
    ],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_push_that_is_broken_off_ends_the_session(
    where: str, short: bool, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
):
    session = query().open(on_late="keep")
    session.push("a", row(1))
    session.push("b", row(2))
    with monkeypatch.context() as patch:

        def broken(*_: object) -> None:
            raise error

        patch.setattr(where, broken)
        if not short:
            session._stream_inputs.clear()
        with session, pytest.raises(error):
            session.push("a", {"t": [3, 0], "k": [1, 1]})
    assert_ended(session, BROKEN_OFF)
    assert session.metrics["streams"]["b"]["rows_in"] == 1
    assert session.state_bytes == 0
    assert session.close().num_rows == 0


@pytest.mark.parametrize(
    ("rows_only", "where"),
    [
        (True, "windjoin.stream_rows.StreamRows.prepare"),
        (True, "windjoin.session_pushing.as_table"),
        (False, "windjoin.stream_rows.StreamRows.prepare"),
        (True, "windjoin.stream_rows.StreamRows.computed"),
        (False, "windjoin.stream_rows.StreamRows.computed"),
    ],
)
def test_an_interrupt_before_rows_were_taken_refuses_them(
    rows_only: bool, where: str, monkeypatch: pytest.MonkeyPatch
):
    owner, name = where.rsplit(".", 1)
    original, interrupt = pkgutil.resolve_name(where), []

    def interrupted(*given: object) -> object:
        if interrupt:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(pkgutil.resolve_name(owner), name, interrupted)
    late = pa.table({"t": [2, 1], "k": [1, 1]})
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    computed = wj.join(a, b, on=a["k"] + 1 == b["k"] + 1)  # not for compiled code alone
    session = computed.open({"a": SCHEMA, "b": SCHEMA}, rows_only=rows_only, lateness=5)
    session.push("b", pa.table(row(1)))
    if not where.endswith("computed"):
        session._stream_inputs.clear()  # so that rows come the long way
    interrupt.append(1)
    with pytest.raises(KeyboardInterrupt):
        session.push("a", late)
    assert session.metrics["rows_in"] == 1
    interrupt.clear()
    session.push("a", late)
    assert session.metrics["results"] == 2


def test_letting_go_is_not_interrupted(monkeypatch: pytest.MonkeyPatch):
    session = query().open({"a": SCHEMA, "b": SCHEMA})
    session.push("a", row(1))
    calls = []

    def interrupted(*_: object) -> None:
        calls.append(1)
        if len(calls) < 3:
            raise KeyboardInterrupt

    def broken(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("windjoin.kernels.live.LiveJoin.close", interrupted)
        patch.setattr("windjoin.kernels.live.LiveJoin.push", broken)
        session._stream_inputs.clear()
        with pytest.raises(KeyboardInterrupt) as told:
            session.push("b", row(1))
    assert isinstance(told.value.__context__, MemoryError)
    assert len(calls) == 3
    assert_ended(session, BROKEN_OFF)
    assert session.metrics["rows_in"] == 1
    assert session.state_bytes == 0


def test_results_that_an_error_leaves_nobody_to_take_are_not_made(monkeypatch: pytest.MonkeyPatch):
    flushed = []
    monkeypatch.setattr("windjoin.kernels.live.LiveJoin.flush", flushed.append)
    with contextlib.suppress(ZeroDivisionError), query().open() as session:
        raise ZeroDivisionError
    assert flushed == []
    assert_ended(session, CLOSED)


def test_rows_that_waited_and_cannot_be_used_end_the_session():
    a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    session = wj.join(a, b, on=a["k"] * 2 == b["k"]).open()
    session.push("a", row(1, k=2**62))
    with pytest.raises(wj.DataError, match="does not fit int64"):
        session.push("b", row(1))
    assert_ended(session, BROKEN_OFF)


def test_a_first_batch_that_does_not_fit_may_be_corrected():
    session = query().open()
    session.push("a", row(1))
    with pytest.raises(wj.SchemaError, match="cannot be compared"):
        session.push("b", {"t": [2], "k": ["1"]})
    assert session.metrics["rows_in"] == 1
    assert session.push("b", row(2)).num_rows == 1


def test_two_threads_at_once_are_refused():
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            entered.set()
            leave.wait(10)
            return pa.table(row(1)).__arrow_c_stream__(requested_schema)

    session = query().open({"a": SCHEMA, "b": SCHEMA})
    pushing = threading.Thread(target=session.push, args=("a", Slow()))
    pushing.start()
    try:
        assert entered.wait(10)
        message = "this session is in use by another thread; push from one thread at a time"
        for use in (lambda: session.push("b", row(1)), session.close):
            with pytest.raises(wj.SessionError, match=f"^{message}$"):
                use()
    finally:
        leave.set()
        pushing.join()
    assert session.push("b", row(1)).num_rows == 1


def test_promises_before_the_schemas_are_known_count():
    session = query().open(on_late="keep")
    session.push("a", row(1))
    session.advance("a", 5)
    session.finish("b")
    session.push("a", row(6))
    assert session.push("b", row(6)).num_rows == 0
    assert session.metrics["streams"]["b"]["rejected"] == 1
    session.push("a", row(4))
    assert session.metrics["streams"]["a"]["rejected"] == 1


def test_nothing_is_kept_for_a_stream_that_ended_empty():
    most = 0

    def batches() -> Iterator[dict[str, Any]]:
        nonlocal most
        for t in range(100):
            gc.collect()
            most = max(most, pa.total_allocated_bytes())
            yield {"t": pa.array(np.full(10_000, t)), "k": pa.array(np.zeros(10_000, np.int64))}

    gc.collect()
    gc.freeze()  # so that each search is through what this test has made
    before = pa.total_allocated_bytes()
    try:
        assert list(query().iterate({"a": batches(), "b": []})) == []
    finally:
        gc.unfreeze()
    assert most - before < 10 * 160_000


def test_metrics_of_streams_add_up():
    session = query().open({"a": SCHEMA, "b": SCHEMA})
    for t in range(20):
        session.push("a", row(t))
        session.push("b", row(t, k=t % 2))
    metrics = session.metrics
    streams = metrics["streams"].values()
    for name in ("rows_in", "results", "rejected", "expired", "comparisons"):
        assert metrics[name] == sum(stream[name] for stream in streams), name
    assert all(stream["results"] > 0 for stream in streams)
    assert 0 < sum(stream["state_bytes"] for stream in streams) <= metrics["state_bytes"]
