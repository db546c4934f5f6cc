"""What a stream holds because another is behind: seen in the counters, and told of once."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin import held, waiting
from windjoin.kernels.live import LiveJoin

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
SCHEMAS = {"a": SCHEMA, "b": SCHEMA}
ROWS = 5000


def query() -> wj.Query:
    a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    return wj.join(a, b, on=a["k"] == b["k"])


def rows(first: int, n: int) -> dict[str, Any]:
    return {"t": np.arange(first, first + n), "k": np.arange(first, first + n)}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MANY_ROWS", ROWS - 100)


def test_counters_say_who_holds_back_whom():
    with query().open(SCHEMAS) as session:
        streams = session.metrics["streams"]
        assert [streams[name]["lag"] for name in "ab"] == [None, None]
        session.push("b", rows(3, 1))
        session.push("a", rows(0, 100))
        streams = session.metrics["streams"]
        assert (streams["a"]["lag"], streams["a"]["held_by"]) == (0, "b")
        assert streams["a"]["held_rows"] == 89  # its window is from 89 on
        share = streams["a"]["held_bytes"] / streams["a"]["state_bytes"]
        assert share == pytest.approx(0.89, abs=0.01)
        assert (streams["b"]["lag"], streams["b"]["held_by"]) == (96, None)
        session.push("b", rows(99, 1))
        streams = session.metrics["streams"]
        assert [streams["a"][name] for name in ("held_by", "held_rows", "held_bytes")] == [
            None,
            0,
            0,
        ]


def test_lag_of_timestamps_is_seconds():
    schema = pa.schema([("t", pa.timestamp("ms")), ("k", pa.int64())])
    a, b = (wj.stream(name, time="t", window="10s") for name in ("a", "b"))
    now = datetime(2026, 1, 5)
    with wj.join(a, b, on=a["k"] == b["k"]).open({"a": schema, "b": schema}) as session:
        for name, behind in (("a", 0), ("b", 1.5)):
            times = [now - timedelta(seconds=behind)]
            session.push(name, pa.table({"t": times, "k": [1]}, schema=schema))
        assert session.metrics["streams"]["b"]["lag"] == 1.5


@pytest.mark.parametrize("rows_only", [False, True])
@pytest.mark.parametrize("hosts", [None, 2])
@pytest.mark.usefixtures("few")
def test_a_stream_that_holds_much_is_told_of_once(rows_only: bool, hosts: int | None):
    told = r"^stream 'a' holds [0-9,]+ rows \([0-9]+ MB\) that are older than its window, because"
    reached = "stream 'b' has come no further than 3; give it an idle= "
    with query().open(SCHEMAS, rows_only=rows_only, hosts=hosts) as session:
        session.push("b", rows(3, 1))
        session.push("a", rows(0, 2 * ROWS))
        with pytest.warns(wj.HeldBackWarning, match=told) as said:
            session.push("a", rows(2 * ROWS, 1))
        assert [one.filename for one in said] == [__file__]
        assert reached in str(said[0].message)
        for first in range(2 * ROWS + 1, 9 * ROWS, ROWS):
            session.push("a", rows(first, ROWS))


@pytest.mark.usefixtures("few")
def test_as_an_error_it_refuses_a_push_and_no_more(monkeypatch: pytest.MonkeyPatch):
    with query().open(SCHEMAS, rows_only=True) as session:
        session.push("a", rows(0, 2 * ROWS))
        before = session.metrics
        with pytest.raises(wj.HeldBackWarning, match="because stream 'b' has not begun; give it"):
            session.push("a", rows(2 * ROWS, 1))
        assert session.metrics == before
        monkeypatch.setattr(LiveJoin, "push", None)  # the door is open again
        session.push("a", rows(2 * ROWS, 1))
        assert len(session.push("b", rows(2 * ROWS, 1))["a"]) == 1


@pytest.mark.usefixtures("few")
def test_windows_that_are_long_hold_much_without_a_word():
    a, b = (wj.stream(name, time="t", window=10**9) for name in ("a", "b"))
    with wj.join(a, b, on=a["k"] == b["k"]).open(SCHEMAS) as session:
        for first in range(0, 4 * ROWS, ROWS):
            session.push("a", rows(first, ROWS))
        assert session.metrics["streams"]["a"]["held_rows"] == 0


def test_rows_that_wait_for_a_schema_are_told_of(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(waiting, "MANY_BYTES", 1 << 20)
    told = (
        "2 MB of rows wait until the schema of 'b' is known; give schemas= to open, then nothing"
        " waits, and idle= and advance let rows go"
    )
    with query().open() as session:
        session.push("a", rows(0, 100_000))
        with pytest.warns(wj.HeldBackWarning, match=f"^{re.escape(told)}$"):
            session.push("a", rows(100_000, 10))
        session.push("a", rows(100_010, 10))
        assert session.push("b", rows(100_015, 1)).num_rows == 1


def test_promises_leave_nothing_behind():
    with query().open(SCHEMAS, rows_only=True) as session:
        for time in range(100):
            session.advance("a", time)
        assert session._owed == []


def test_a_closed_session_holds_no_windows():
    session = query().open(SCHEMAS)
    session.push("a", rows(0, 10))
    session.close()
    assert session._held is None
