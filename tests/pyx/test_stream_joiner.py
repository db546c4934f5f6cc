"""The fast path into a session: what it takes, and that it differs from the general in nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.kernels import window
from windjoin.kernels.live import LiveJoin
from windjoin.pyx.live.session_base import StreamInput

from tests.both_ways import looked_at_twice

Rows = dict[str, Any]


def queries() -> list[wj.Query]:
    """Joins on one key, two keys, a band of integers, of doubles, and of three streams."""
    a, b, c = (
        wj.stream(name, time="t", window=w) for name, w in zip("abc", (9, 4, 30), strict=True)
    )
    return [
        wj.join(a, b, on=a["k"] == b["k"]),
        wj.join(a, b, on=[a["k"] == b["k"], a["i"] == b["i"]]),
        wj.join(a, b, on=abs(a["i"] - b["i"]) <= 2),
        wj.join(a, b, on=abs(a["x"] - b["x"]) <= 0.25),
        wj.join(a, b, c, on=[a["k"] == b["k"], abs(b["x"] - c["x"]) <= 0.5]),
    ]


COLUMNS: list[dict[str, tuple[str, ...]]] = [
    {"a": ("k",), "b": ("k",)},
    {"a": ("k", "i"), "b": ("k", "i")},
    {"a": ("i",), "b": ("i",)},
    {"a": ("x",), "b": ("x",)},
    {"a": ("k",), "b": ("k", "x"), "c": ("x",)},
]  # that each query uses


@st.composite
def pushes(draw: st.DrawFn) -> tuple[int, list[tuple[str, Rows]], int]:
    """A query and what comes, in pushes of any size, some rows late or out of order."""
    number = draw(st.integers(0, len(COLUMNS) - 1))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    found, clocks = [], dict.fromkeys("abc", 0)
    for _ in range(draw(st.integers(1, 30))):
        name = draw(st.sampled_from([*COLUMNS[number]]))
        n = draw(st.sampled_from([0, 1, 1, 3, 40, 700]))
        times = clocks[name] + random.integers(0, 4, n).cumsum()
        if draw(st.integers(0, 3)) == 0:
            times -= random.integers(0, 6, n)
        clocks[name] = int(times.max(initial=clocks[name]))
        x = random.integers(0, 12, n) / 4
        if draw(st.integers(0, 7)) == 0:
            x[:1] = np.nan
        rows = {"t": times, "k": random.integers(0, 3, n), "i": random.integers(0, 9, n), "x": x}
        found.append((name, {c: rows[c] for c in ("t", *COLUMNS[number][name])}))
    return number, found, draw(st.sampled_from([0, 3]))


def schemas(number: int) -> dict[str, Any]:
    """Schemas of all streams of a query."""
    types = {"t": pa.int64(), "k": pa.int64(), "i": pa.int64(), "x": pa.float64()}
    return {
        name: pa.schema([(column, types[column]) for column in ("t", *columns)])
        for name, columns in COLUMNS[number].items()
    }


def outcome(number: int, come: list[tuple[str, Rows]], lateness: int) -> tuple[Any, ...]:
    """What every push returns, and the counters at the end."""
    query = queries()[number]
    options = {"rows_only": True, "lateness": lateness, "on_late": "keep"}
    with query.open(schemas=schemas(number), **options) as session:
        results = []
        for name, rows in come:
            out = session.push(name, rows)
            assert list(out) == list(query.names)
            results.append(sorted(zip(*(part.tolist() for part in out.values()), strict=True)))
        metrics = session.metrics
        rejected = {name: table.num_rows for name, table in session.rejected.items()}
    for counts in (metrics, *metrics["streams"].values()):
        counts.pop("state_bytes")
        counts.pop("held_bytes", None)
    return results, metrics, rejected


@given(pushes())
def test_both_ways_return_and_count_the_same(case: tuple[int, list[tuple[str, Rows]], int]) -> None:
    short = outcome(*case)
    with looked_at_twice():
        assert outcome(*case) == short


@pytest.mark.parametrize("number", range(len(COLUMNS)))
def test_plain_rows_go_the_short_way(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with queries()[number].open(schemas=schemas(number), rows_only=True) as session:
        monkeypatch.setattr(LiveJoin, "push", None)  # the general path would fail
        for now in range(5):
            for name, columns in COLUMNS[number].items():
                rows = {c: np.ones(3, np.float64 if c == "x" else np.int64) for c in columns}
                out = session.push(name, {"t": np.full(3, now), **rows})
        assert len(out["a"]) > 0
        assert session.metrics["rows_in"] == 15 * len(session.query.names)


def test_rings_neither_shrink_nor_lead_the_long_way_between_large_pushes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resized, resize = [], window.Window._resize
    monkeypatch.setattr(
        window.Window, "_resize", lambda self, rows: (resized.append(rows), resize(self, rows))
    )
    monkeypatch.setattr(LiveJoin, "push", None)  # the general path would fail
    found = 0
    with queries()[0].open(schemas=schemas(0), rows_only=True) as session:
        for start in range(0, 30_000, 5_000):  # with each push the other window runs empty
            for name in "ab":
                times = np.arange(start, start + 5_000)
                found += len(session.push(name, {"t": times, "k": times % 3})["a"])
    apart = [d for d in range(-9, 10) if d % 3 == 0 and -4 <= d <= 9]  # b after a
    assert found == sum(30_000 - abs(d) for d in apart)
    assert len(resized) == 2


def test_columns_that_nobody_asks_for_do_not_lead_the_long_way() -> None:
    with queries()[0].open(schemas=schemas(0), rows_only=True) as session:
        stream_input = session._stream_inputs["a"]
        plain = {"t": np.array([1, 2]), "k": np.array([1, 1])}
        assert stream_input.push({**plain, "other": np.array([0.5, 1.5])}) is not None
        assert stream_input.push({**plain, "other": np.array(["x", "y"])}) is None
        assert stream_input.push({**plain, "other": np.array([1])}) is None
        assert stream_input.push({**plain, "other": [1, 2]}) is None


def test_a_window_with_too_many_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "MOST_ROWS", 1000)
    with queries()[0].open(schemas=schemas(0), rows_only=True) as session:
        rows = {"t": np.full(999, 5), "k": np.zeros(999, np.int64)}
        session.push("a", rows)
        with pytest.raises(MemoryError, match="a window of 1998 rows is more than the 1000"):
            session.push("a", rows)


ODD: dict[str, Any] = {
    "a list": [1, 2],
    "32 bits": np.array([1, 2], np.int32),
    "other byte order": np.array([1, 2], ">i8"),
    "every second": np.arange(4)[1:3:1][::-1],
    "doubles": np.array([1.0, 2.0]),
}


@pytest.mark.parametrize("keys", ODD.values(), ids=ODD.keys())
def test_other_arrays_go_the_long_way(keys: Any) -> None:
    entrance_takes = []
    with queries()[0].open(schemas=schemas(0), rows_only=True) as session:
        stream_input = session._stream_inputs["a"]
        assert isinstance(stream_input, StreamInput)
        rows = {"t": np.array([1, 2]), "k": keys}
        entrance_takes.append(stream_input.push(rows))
        entrance_takes.append(stream_input.push({"t": np.array([1, 2])}))
        entrance_takes.append(stream_input.push({"t": np.array([1, 2]), "k": np.array([1])}))
        entrance_takes.append(stream_input.push([rows]))
    assert entrance_takes == [None] * 4


def test_columns_of_unequal_length_are_refused() -> None:
    with queries()[0].open(schemas=schemas(0), rows_only=True) as session:
        with pytest.raises(wj.InputError, match="column 't' has 2 rows but column 'k' has 1"):
            session.push("a", {"t": np.array([1, 2]), "k": np.array([1])})
        assert session.metrics["rows_in"] == 0


def test_a_second_thread_amid_a_push_is_refused() -> None:
    query, n = queries()[0], 30_000
    rows = {"t": np.zeros(n, np.int64), "k": np.zeros(n, np.int64)}
    refused, done = [], threading.Event()
    with query.open(schemas=schemas(0), rows_only=True) as session:
        session.push("b", {name: values[:300] for name, values in rows.items()})

        def meddle() -> None:
            while not done.wait(0.001):
                try:
                    session.push("b", {name: values[:0] for name, values in rows.items()})
                except wj.SessionError as error:
                    refused.append(str(error))

        other = threading.Thread(target=meddle)
        other.start()
        try:
            found = session_push_until(session, rows, refused)
        finally:
            done.set()
            other.join()
    assert found % 300 == 0
    assert "this session is in use by another thread" in refused[0]


def session_push_until(session: wj.Session, rows: Rows, refused: list[str]) -> int:
    """Push until the other thread has been refused; how many results that gave."""
    found = 0
    for _ in range(200):
        try:
            found += len(session.push("a", rows)["a"])
        except wj.SessionError:
            time.sleep(0.001)  # the other thread was first
        if refused:
            break
    return found


SWAPPED = """
import threading, time, numpy as np, pyarrow as pa, windjoin as wj

a, b = (wj.stream(name, time="t", window=10) for name in "ab")
plain = pa.schema([("t", pa.int64()), ("v", pa.int64())])
n = 2_000_000
rows = {"t": np.arange(n), "v": np.random.default_rng(0).integers(0, 1000, n)}
last = rows["v"][-10:].copy()

def swap():
    while True:
        time.sleep(0.0005)  # else the first thread would always come in the midst of a push
        try:
            session.push("b", {"t": rows["t"][:0], "v": rows["v"][:0]})
        except wj.SessionError:  # the other thread is pushing
            rows["t"] = rows["v"] = None
            return

query = wj.join(a, b, on=a["v"] == b["v"])
with query.open(rows_only=True, schemas={"a": plain, "b": plain}) as session:
    other = threading.Thread(target=swap)
    other.start()
    while other.is_alive():
        try:
            session.push("a", rows)
            break
        except wj.SessionError:  # the other thread was first
            pass
    other.join(10)
    found = session.push("b", {"t": np.arange(n - 10, n), "v": last})
    print(len(found["a"]) >= 10)
"""


def test_columns_that_another_thread_takes_away_are_read_to_their_end() -> None:
    done = subprocess.run([sys.executable, "-c", SWAPPED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"


def test_names_may_be_strings_of_numpy() -> None:
    a, b = (wj.stream(np.str_(name), time=np.str_("t"), window=5) for name in "ab")
    plain = pa.schema([("t", pa.int64()), ("v", pa.int64())])
    rows = {"t": np.arange(3), "v": np.arange(3)}
    query = wj.join(a, b, on=a[np.str_("v")] == b["v"])
    with query.open(rows_only=True, schemas={"a": plain, "b": plain}) as session:
        session.push("a", rows)
        assert len(session.push("b", rows)["a"]) == 3
