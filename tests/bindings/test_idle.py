"""Streams that are silent for long hold nobody back, and are judged by the watermark reached."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.cli.queryfile import read_query_file
from windjoin.durations import Duration
from windjoin.kernels.live import LiveJoin

from tests.api import build, rejected_rows, schemas, table_rows, user_time
from tests.both_ways import looked_at_twice
from tests.cases import SessionCase
from tests.compare import assert_same_results
from tests.oracle import TIME, Advance, Event, Outcome, Results, replay
from tests.strategies import sessions

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
SCHEMAS = {"a": SCHEMA, "b": SCHEMA}


class Clock:
    """Seconds that go on when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def query(window: int = 10, **idle: str) -> wj.Query:
    a, b = (wj.stream(n, time="t", window=window, idle=idle.get(n)) for n in ("a", "b"))
    return wj.join(a, b, on=a["k"] == b["k"])


def rows(*times: int) -> dict[str, Any]:
    return {"t": np.array(times, np.int64), "k": np.ones(len(times), np.int64)}


def held(session: Any, name: str) -> int:
    count: int = session.metrics["streams"][name]["state_rows"]
    return count


# -- the definition -------------------------------------------------------------------------------


class Model:
    """Promises that are made in the name of silent streams, from the definition alone."""

    def __init__(self, limits: Sequence[float | None], lateness: int) -> None:
        self.limits = limits
        self.lateness = lateness
        self.marks: list[int | None] = [None] * len(limits)
        self.last = [0.0] * len(limits)

    def after(self, event: Event, now: float) -> list[Advance]:
        if isinstance(event, Advance):
            self.raise_mark(event.stream, event.time)
        else:
            for row in event.rows:
                mark = self.marks[event.stream]
                if row[TIME] is not None and (mark is None or row[TIME] >= mark):
                    self.raise_mark(event.stream, row[TIME] - self.lateness)
        if isinstance(event, Advance) or event.rows:
            self.last[event.stream] = now
        silent = [
            limit is not None and now - last >= limit
            for limit, last in zip(self.limits, self.last, strict=True)
        ]
        speaking = [mark for mark, quiet in zip(self.marks, silent, strict=True) if not quiet]
        known = [mark for mark in speaking if mark is not None]
        if not known or len(known) < len(speaking):
            return []
        for stream, quiet in enumerate(silent):
            if quiet:
                self.raise_mark(stream, min(known))
        return [Advance(stream, min(known)) for stream, quiet in enumerate(silent) if quiet]

    def raise_mark(self, stream: int, mark: int) -> None:
        earlier = self.marks[stream]
        self.marks[stream] = mark if earlier is None else max(earlier, mark)


def expected(
    case: SessionCase, clock: Sequence[float], limits: Sequence[float | None]
) -> tuple[Outcome, list[Results]]:
    """What the session owes, and what each step of it does."""
    model, events, places = Model(limits, case.lateness), [], []
    for event, now in zip(case.events(), clock, strict=True):
        places.append(len(events))
        events += [event, *model.after(event, now)]
    outcome = replay(case.case.query, events, case.lateness)
    return outcome, [outcome.results[place] for place in places]


@st.composite
def silences(draw: st.DrawFn) -> tuple[SessionCase, list[float], list[float | None]]:
    """A session, when its steps happen, and after how many seconds each stream is idle."""
    case = draw(sessions(most=3))
    pauses = [draw(st.sampled_from([0, 0, 1, 4, 5, 6, 20])) for _ in case.steps]
    limits = [draw(st.sampled_from([None, 5.0, 5.0, 9.0])) for _ in case.case.streams]
    return case, np.cumsum(pauses).astype(float).tolist(), limits


def open_with(
    session_case: SessionCase, limits: Sequence[float | None], clock: Clock, **options: Any
) -> Any:
    import datetime

    asked = build(session_case.case)
    lateness = eval(session_case.lateness_source, {"datetime": datetime})
    lengths = [None if limit is None else Duration(int(limit * 10**9)) for limit in limits]
    streams = tuple(
        replace(stream, idle=length) for stream, length in zip(asked.streams, lengths, strict=True)
    )
    again = replace(asked, streams=streams)
    return again.open(
        schemas(session_case.case), lateness=lateness, on_late="keep", clock=clock, **options
    )


@pytest.mark.parametrize("hosts", [None, 2])
@given(silences())
def test_results_are_those_of_the_rows_that_were_accepted(
    hosts: int | None, drawn: tuple[SessionCase, list[float], list[float | None]]
) -> None:
    session_case, times, limits = drawn
    case, clock = session_case.case, Clock()
    outcome, owed = expected(session_case, times, limits)
    found: Results = Counter()
    session = open_with(session_case, limits, clock, hosts=hosts)
    for number, (step, now) in enumerate(zip(session_case.steps, times, strict=True)):
        clock.now = now
        name = case.names[step.stream]
        if step.time is not None:
            session.advance(name, user_time(session_case, step.stream, step.time))
            continue
        table = session.push(name, case.streams[step.stream].table(step.start, step.stop))
        got = Counter(table_rows(case.names, table))
        if hosts is None:
            assert_same_results(got.elements(), owed[number], f"step {number}")
        found += got
    found += Counter(table_rows(case.names, session.close()))
    assert_same_results(found.elements(), sum(outcome.results, Counter()))
    for name, late in zip(case.names, outcome.rejected, strict=True):
        assert rejected_rows(session, name) == [row for row, _ in late]


# -- both ways into a session ---------------------------------------------------------------------


@st.composite
def paced(draw: st.DrawFn) -> list[tuple[float, str, dict[str, Any]]]:
    random, found, clocks = np.random.default_rng(draw(st.integers(0, 99))), [], [0, 0, 0]
    now = 0.0
    for _ in range(draw(st.integers(1, 25))):
        stream = draw(st.integers(0, 2))
        n = draw(st.sampled_from([0, 1, 1, 5, 1500]))
        times = clocks[stream] + random.integers(0, 4, n).cumsum()
        clocks[stream] = int(times.max(initial=clocks[stream] + draw(st.sampled_from([0, 9]))))
        now += draw(st.sampled_from([0, 0, 2, 3, 7]))
        found.append((now, "abc"[stream], {"t": times, "k": random.integers(0, 3, n)}))
    return found


def outcome(pushes: list[tuple[float, str, dict[str, Any]]]) -> tuple[Any, ...]:
    a, b, c = (
        wj.stream(name, time="t", window=9, idle=idle)
        for name, idle in zip("abc", ("3s", None, "3s"), strict=True)
    )
    joined = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])
    clock, results = Clock(), []
    known = dict.fromkeys("abc", SCHEMA)
    with joined.open(known, rows_only=True, on_late="keep", clock=clock, idle="5s") as session:
        for clock.now, name, batch in pushes:
            out = session.push(name, batch)
            results.append(sorted(zip(*(part.tolist() for part in out.values()), strict=True)))
        metrics = session.metrics
        rejected = {name: table.num_rows for name, table in session.rejected.items()}
    for counts in (metrics, *metrics["streams"].values()):
        counts.pop("state_bytes")
        counts.pop("held_bytes", None)
    return results, metrics, rejected


@given(paced())
def test_both_ways_hear_the_same_silence(pushes: list[tuple[float, str, dict[str, Any]]]) -> None:
    short = outcome(pushes)
    with looked_at_twice():
        assert outcome(pushes) == short


def test_rows_of_idle_sessions_take_the_short_way(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    with query().open(SCHEMAS, rows_only=True, idle="30s", clock=clock) as session:
        monkeypatch.setattr(LiveJoin, "push", None)  # the general path would fail
        session.push("b", rows(1))
        session.push("a", rows(1, 2, 30))
        assert held(session, "a") == 3
        clock.now = 30
        session.push("a", rows(31))
        assert (held(session, "a"), held(session, "b")) == (2, 0)


# -- one by one -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [rows, lambda *t: {n: v.tolist() for n, v in rows(*t).items()}])
@pytest.mark.parametrize("rows_only", [False, True])
def test_a_silent_stream_holds_nobody_back_and_is_judged_by_that(rows_only: bool, make: Any):
    clock = Clock()
    with query().open(SCHEMAS, idle="30s", clock=clock, rows_only=rows_only) as session:
        session.push("b", make(0))
        for second in range(0, 30, 10):
            clock.now = second
            session.push("a", make(100 * second))
        assert held(session, "a") == 3
        assert not session.metrics["streams"]["b"]["idle"]
        clock.now = 30
        session.push("a", make(3000))
        assert held(session, "a") == 1
        assert session.metrics["streams"]["b"]["idle"]
        told = (
            "stream 'b', row 0 of the push: its time 2999 is before the stream's watermark 3000, so"
            " it is late; the stream had been silent for longer than its idle=, so nothing before"
            " that was waited for; a longer idle= would have kept it."
        )
        with pytest.warns(wj.LateRowWarning, match=re.escape(told)):
            session.push("b", make(2999))
        assert not session.metrics["streams"]["b"]["idle"]
        session.push("a", make(4000))
        assert held(session, "a") == 2  # b speaks again, and is waited for
        assert len(session.push("b", make(4000))) > 0


def test_where_all_are_silent_nothing_is_given_up():
    clock = Clock()
    with query().open(SCHEMAS, idle="1s", clock=clock) as session:
        session.push("a", rows(0))
        session.push("b", rows(0))
        clock.now = 3600
        session.push("a", rows())
        session.finish("b")
        assert (held(session, "a"), session.metrics["expired"]) == (0, 1)  # b has ended
        session.push("a", rows(5))
        assert session.metrics["late"] == 0


def test_a_finished_stream_does_not_speak_for_others():
    a, b, c = (wj.stream(name, time="t", window=10) for name in "abc")
    joined = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])
    clock = Clock()
    with joined.open(dict.fromkeys("abc", SCHEMA), idle="5s", clock=clock) as session:
        session.push("a", rows(1))
        session.push("b", rows(1))
        clock.now = 9
        session.finish("c")
        session.advance("a", 50)
        with pytest.warns(wj.LateRowWarning, match="stream 'b'"):
            session.push("b", rows(49))
        session.push("b", rows(50))


def test_the_streams_own_idle_comes_first():
    clock = Clock()
    with query(b="1m").open(SCHEMAS, idle="5s", clock=clock) as session:
        session.push("a", rows(0))
        session.push("b", rows(0))
        for clock.now in (6, 59.9):
            session.push("a", rows(round(100 * clock.now)))
        assert held(session, "a") == 3
        clock.now = 60
        session.push("a", rows(7000))
        assert held(session, "a") == 1


def test_a_promise_is_a_sign_of_life():
    clock = Clock()
    with query().open(SCHEMAS, idle="5s", clock=clock) as session:
        session.push("b", rows(0))
        clock.now = 4
        session.advance("b", 1)
        clock.now = 8
        session.push("a", rows(0, 100))
        assert held(session, "a") == 2
        clock.now = 9
        session.advance("a", 100)
        assert held(session, "a") == 1


def test_results_of_hosts_wait_for_no_silent_stream():
    clock = Clock()
    options: dict[str, Any] = {"hosts": 2, "strategy": "atr", "segment": 5}
    with query().open(SCHEMAS, idle="5s", clock=clock, **options) as session:
        found = len(session.push("a", rows(1, 2))) + len(session.push("b", rows(3)))
        assert found == 0
        clock.now = 5
        found += len(session.push("a", rows(100)))
        assert found == 2
        clock.now = 20
        session.advance("a", 200)
        session.push("a", rows(200, 300))
        assert (held(session, "a"), held(session, "b")) == (1, 0)


def test_iterating_takes_idle_too():
    clock, most = Clock(), 0

    async def use() -> None:
        ended = asyncio.Event()

        async def fast() -> AsyncIterator[dict[str, Any]]:
            nonlocal most
            for clock.now in range(100):
                yield rows(10 * int(clock.now))
                await asyncio.sleep(0)
                most = max(most, results.metrics["streams"]["a"]["state_rows"])
            ended.set()

        async def slow() -> AsyncIterator[dict[str, Any]]:
            yield rows(0)
            await ended.wait()
            yield rows(990)

        sources = {"a": fast(), "b": slow()}
        results = query().aiterate(sources, schemas=SCHEMAS, idle="5s", clock=clock)
        found = [table async for table in results]
        assert sum(map(len, found)) == 4

    asyncio.run(use())
    assert 5 <= most < 10


def test_the_clock_on_the_wall_is_taken_if_no_other_is_given():
    with query().open(SCHEMAS, idle="20ms") as session:
        session.push("b", rows(0))
        session.push("a", rows(0, 500))
        time.sleep(0.03)
        session.push("a", rows(1000))
        assert held(session, "a") == 1


def test_explain_says_who_is_idle():
    clock = Clock()
    with query(b="1m30s").open(SCHEMAS, idle="5s", clock=clock) as session:
        clock.now = 5
        streams = session.explain("json")["streams"]
        assert [(one["idle"], one["idle_now"]) for one in streams] == [
            ("5s", True),
            ("1m30s", False),
        ]
        text = session.explain()
    assert "  a: time t, window 10, idle after 5s, idle now\n" in text
    assert "  b: time t, window 10, idle after 1m30s\n" in text


def test_query_files_may_say_when_a_stream_is_idle(folder: Path):
    path = folder / "query.toml"
    path.write_text(path.read_text().replace("[streams.a]", '[streams.a]\nidle = "30s"'))
    assert str(read_query_file(path).query.streams[0].idle) == "30s"


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("idle", "message"),
    [
        (30, 'idle=30: give a duration on the clock, such as idle="30s"'),
        ("30", "idle: '30' is not a duration"),
        ("0s", "idle='0s' is no time at all; leave it out, or give more"),
        (timedelta(seconds=-1), "is no time at all; leave it out, or give more"),
    ],
)
def test_idle_is_a_duration(idle: Any, message: str):
    with pytest.raises(wj.QueryError, match=re.escape(message)):
        query().open(idle=idle)
    with pytest.raises(wj.QueryError, match="^stream 'a': .*" + re.escape(message)):
        wj.stream("a", time="t", window=1, idle=idle)


def test_a_clock_is_a_function():
    message = "clock=5: give a function that returns seconds, such as time.monotonic"
    with pytest.raises(wj.QueryError, match=re.escape(message)):
        query().open(clock=5)


def test_a_stream_shows_its_idle():
    shown = "stream('a', time='t', window=5, idle='1m30s')"
    assert repr(wj.stream("a", time="t", window=5, idle="90s")) == shown
