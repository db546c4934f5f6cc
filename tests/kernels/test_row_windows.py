"""Windows of the last rows of a stream, ``window=wj.rows(n)``, on every path."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin import testing

from tests import oracle

LONG = 1000
ROWS = st.lists(
    st.tuples(st.integers(0, 8) | st.none(), st.integers(0, 2) | st.none(), st.integers(0, 3)),
    max_size=10,
)


def table(rows: list[Any]) -> pa.Table:
    columns = [pa.array([row[k] for row in rows], pa.int64()) for k in range(3)]
    return pa.table(columns, ["ts", "k", "x"])


def in_words(rows: list[Any]) -> list[oracle.Row]:
    return [dict(zip(("ts", "k", "x"), row, strict=True)) for row in rows]


def equal(a: int, b: int, column: str) -> oracle.Expression:
    return oracle.Apply("==", (oracle.Column(a, column), oracle.Column(b, column)))


@st.composite
def joins(draw: Any) -> Any:
    n = draw(st.sampled_from([2, 2, 3]))
    counts = [draw(st.integers(1, 4) | st.none()) for _ in range(n)]
    counts[draw(st.integers(0, n - 1))] = draw(st.integers(1, 4))
    times = [draw(st.integers(0, 6)) for _ in range(n)]
    filtered = [draw(st.booleans()) for _ in range(n)]
    closed = draw(st.sampled_from(["both", "right"]))
    keep = draw(st.sampled_from([(), (), (0,), (0, 1)]))
    names = "abc"[:n]
    streams = [
        wj.stream(
            name,
            time="ts",
            window=times[s] if counts[s] is None else wj.rows(counts[s]),
            where=(lambda one: one["x"] > 0) if filtered[s] else None,
        )
        for s, name in enumerate(names)
    ]
    on: list[Any] = [left["k"] == right["k"] for left, right in pairwise(streams)]
    predicates = [equal(s, s + 1, "k") for s in range(n - 1)]
    if draw(st.booleans()):
        on.append(streams[0]["x"] <= streams[1]["x"])
        predicates.append(oracle.Apply("<=", (oracle.Column(0, "x"), oracle.Column(1, "x"))))
    q = wj.join(*streams, on=on, closed=closed, keep=[names[s] for s in keep])
    asked = oracle.Query(
        tuple(LONG if count else time for count, time in zip(counts, times, strict=True)),
        tuple(predicates),
        tuple(
            oracle.Apply(">", (oracle.Column(s, "x"), oracle.Literal(0))) if filtered[s] else None
            for s in range(n)
        ),
        closed,
        keep=keep,
    )
    return q, asked, counts


def wanted(asked: oracle.Query, rows: list[Any], counts: Any) -> Any:
    """What is to come out, by the numbers of the rows as given."""
    words = [in_words(side) for side in rows]
    places = [[n for n, row in enumerate(side) if row["ts"] is not None] for side in words]
    there = [[row for row in side if row["ts"] is not None] for side in words]
    found: Any = Counter()
    for numbers in oracle.within_last_rows(asked, there, counts).elements():
        found[tuple(places[s][row] for s, row in enumerate(numbers))] += 1
    members = [{numbers[s] for numbers in found} for s in range(len(rows))]
    for s in asked.keep:
        for row in places[s]:
            if row not in members[s] and oracle.takes_part(asked, s, words[s][row]):
                found[tuple(row if k == s else -1 for k in range(len(rows)))] += 1
    return found


def combinations(found: Any, names: Any) -> Any:
    return Counter(zip(*(found[name].tolist() for name in names), strict=True))


@given(join=joins(), sides=st.tuples(ROWS, ROWS, ROWS), threads=st.sampled_from([1, 2]))
def test_whole_tables_are_joined_as_defined(join: Any, sides: Any, threads: int) -> None:
    q, asked, counts = join
    rows = list(sides)[: len(q.names)]
    tables = {name: table(side) for name, side in zip(q.names, rows, strict=True)}
    expected = wanted(asked, rows, counts)
    assert combinations(q.indices(tables, threads=threads), q.names) == expected


@given(join=joins(), sides=st.tuples(ROWS, ROWS, ROWS), hosts=st.sampled_from([1, 2, 3]))
def test_hosts_share_whole_tables(join: Any, sides: Any, hosts: int) -> None:
    q, asked, counts = join
    rows = list(sides)[: len(q.names)]
    tables = {name: table(side) for name, side in zip(q.names, rows, strict=True)}
    expected = wanted(asked, rows, counts)
    assert combinations(q.indices(tables, hosts=hosts, strategy="ctr"), q.names) == expected


@given(join=joins(), sides=st.tuples(ROWS, ROWS, ROWS), data=st.data())
def test_pushed_rows_are_joined_as_defined(join: Any, sides: Any, data: Any) -> None:
    q, asked, counts = join
    rows = list(sides)[: len(q.names)]
    lateness = data.draw(st.sampled_from([0, 0, 2, 8]))
    for side in rows:  # late rows are another matter
        side.sort(key=lambda row: 0 if row[0] is None else row[0] // (lateness + 1))
    tables = {name: table(side) for name, side in zip(q.names, rows, strict=True)}
    sent, found = dict.fromkeys(q.names, 0), Counter()
    schemas = {name: one.schema for name, one in tables.items()}
    with q.open(schemas, lateness=lateness, rows_only=True) as s:
        while left := [name for name in q.names if sent[name] < len(tables[name])]:
            name = data.draw(st.sampled_from(left))
            batch = tables[name].slice(sent[name], data.draw(st.integers(1, 4)))
            found += combinations(s.push(name, batch), q.names)
            sent[name] += len(batch)
            if data.draw(st.integers(0, 9)) == 0:
                s._live.begin_anew()  # type: ignore[union-attr]
            if data.draw(st.integers(0, 9)) == 0:
                s._live._sweep()  # type: ignore[union-attr]
        found += combinations(s.close(), q.names)
    assert found == wanted(asked, rows, counts)


def test_windows_of_rows_follow_any_rate() -> None:
    """Rows come at rates that change a thousand times over: the window of time goes with them."""
    random = np.random.default_rng(3)
    gaps = np.concatenate([np.full(300, gap) for gap in (1, 1000, 1, 30, 2000, 1, 5000)])
    times = {name: np.cumsum(gaps + random.integers(0, 2, len(gaps))) for name in "ab"}
    tables = {
        name: pa.table({"ts": time, "k": random.integers(0, 5, len(time))})
        for name, time in times.items()
    }
    a, b = (wj.stream(name, time="ts", window=wj.rows(40)) for name in "ab")
    q = wj.join(a, b, on=a["k"] == b["k"])
    expected = combinations(q.indices(tables), "ab")
    found: Any = Counter()
    most = 0
    schemas = {name: one.schema for name, one in tables.items()}
    with q.open(schemas, rows_only=True) as s:
        for at in range(0, len(gaps), 30):
            for name, one in tables.items():
                found += combinations(s.push(name, one.slice(at, 30)), "ab")
                most = max(most, s.metrics["streams"][name]["state_rows"])
        found += combinations(s.close(), "ab")
    assert found == expected
    assert most <= 40 * 16 + 60


def test_state_stays_small_however_long_it_goes_on() -> None:
    a, b = (wj.stream(name, time="ts", window=wj.rows(100)) for name in "ab")
    q = wj.join(a, b, on=a["k"] == b["k"])
    sizes = []
    with q.open(rows_only=True) as s:
        for at in range(0, 60_000, 500):
            time = np.arange(at, at + 500)
            s.push("a", {"ts": time, "k": time})
            s.push("b", {"ts": time, "k": time})
            sizes.append(s.state_bytes)
    assert max(sizes[60:]) <= 1.5 * max(sizes[:60])


def test_saved_sessions_go_on(tmp_path: Any) -> None:
    random = np.random.default_rng(5)
    a = wj.stream("a", time="ts", window=wj.rows(7), where=lambda a: a["k"] > 0)
    b = wj.stream("b", time="ts", window=9)
    q = wj.join(a, b, on=a["k"] == b["k"], how="left")
    tables = {
        name: pa.table(
            {
                "ts": np.sort(random.integers(0, 90, 120)),
                "k": pa.array(random.integers(0, 4, 120), mask=random.random(120) < 0.1),
            }
        )
        for name in "ab"
    }
    found, s = [], q.open({name: one.schema for name, one in tables.items()}, lateness=2)
    for at in range(0, 120, 10):
        for name, one in tables.items():
            found.append(s.push(name, one.slice(at, 10)))
        if at % 30 == 0:
            s.save(tmp_path / "snapshot")
            s.abandon()
            s = wj.restore(q, tmp_path / "snapshot")
    found.append(s.close())
    testing.assert_same_results(pa.concat_tables(found), testing.expected(q, tables))


def test_results_come_when_it_is_known_which_rows_are_the_last() -> None:
    a, b = wj.stream("a", time="ts", window=wj.rows(1)), wj.stream("b", time="ts", window=50)
    q = wj.join(a, b, cross=True)
    with q.open(rows_only=True) as s:
        s.push("a", {"ts": [1]})
        assert len(s.push("b", {"ts": [10]})["a"]) == 0  # a row of a may come at 9
        found = s.push("a", {"ts": [20]})
        assert found["a"].tolist() == []  # b has come to 10 only, where more may come
        found = s.push("b", {"ts": [11]})
        assert (found["a"].tolist(), found["b"].tolist()) == ([0], [0])
        assert s.explain().count("within the last 1 row") > 0


def test_the_kit_and_explain_know_them() -> None:
    a, b = wj.stream("a", time="ts", window=wj.rows(2)), wj.stream("b", time="ts", window=3)
    q = wj.join(a, b, on=a["k"] == b["k"])
    rows = {"ts": [1, 3, 3, 8, 9], "k": [1, 1, 2, 2, 1]}
    testing.check(q, {"a": rows, "b": {"ts": [2, 2, 4, 7, 7], "k": [1, 1, 2, 2, 1]}}, seed=3)
    q.run({"a": rows, "b": rows})
    assert "window 2 rows" in q.explain()
    assert "then test within the last 2 rows of a" in q.explain()
    assert repr(q.streams[0]) == "stream('a', time='ts', window=rows(2))"


def test_what_is_refused() -> None:
    a, b = wj.stream("a", time="ts", window=wj.rows(2)), wj.stream("b", time="ts", window=3)
    q = wj.join(a, b, on=a["k"] == b["k"])
    for count in (0, -1, 1.5, True, "3"):
        with pytest.raises(wj.QueryError, match=r"rows\(.*\): give a number of rows from 1"):
            wj.rows(count)  # type: ignore[arg-type]
    with pytest.raises(wj.QueryError, match="nearest= is not for windows of rows"):
        wj.join(a, b, on=a["k"] == b["k"], nearest=1, direction="backward")
    with pytest.raises(wj.QueryError, match="a session with hosts= is not for windows of rows"):
        q.open({name: pa.schema([("ts", pa.int64()), ("k", pa.int64())]) for name in "ab"}, hosts=2)
    with pytest.raises(wj.QueryError, match="shed= is not for windows of rows"):
        q.open(shed=wj.Shedding(budget=0.5))


def test_query_files_and_other_refusals(tmp_path: Any) -> None:
    import pyarrow.parquet as pq
    from windjoin.arrow import joiner
    from windjoin.cli.queryfile import read_query_file
    from windjoin.query_text import query_text

    a, b = wj.stream("a", time="ts", window=wj.rows(2)), wj.stream("b", time="ts", window=3)
    q = wj.join(a, b, on=a["k"] == b["k"])
    for name in "ab":
        pq.write_table(pa.table({"ts": [1, 2], "k": [1, 1]}), tmp_path / f"{name}.parquet")
    text = query_text(q, {"a": "a.parquet", "b": "b.parquet"})
    (tmp_path / "query.toml").write_text(text)
    assert 'window = "2 rows"' in text
    read = read_query_file(tmp_path / "query.toml")
    assert [stream.window for stream in read.query.streams] == [wj.rows(2), 3]
    assert query_text(read.query, {"a": "a.parquet", "b": "b.parquet"}) == text
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
    for way in (
        lambda: wj.plan(q, rates={"a": 1, "b": 1}),
        lambda: joiner(q, stream_column="s", schemas=dict.fromkeys("ab", schema)),
    ):
        with pytest.raises(wj.QueryError, match=r"is not for windows of rows, and stream 'a' has"):
            way()
    timed = wj.join(b, wj.stream("c", time="ts", window=3), cross=True)
    with timed.open({"b": schema, "c": schema}) as s:  # noqa: SIM117
        with pytest.raises(wj.SessionError, match="set_window is for inner joins without nearest="):
            s.set_window("b", wj.rows(3))


@pytest.mark.parametrize("rows", [256, 512])  # the room of its window is taken by a later row
def test_a_row_with_a_null_counts_and_is_in_no_result(rows: int) -> None:
    a, b = (wj.stream(name, time="ts", window=wj.rows(1000)) for name in "ab")
    q = wj.join(a, b, on=a["k"] == b["k"])
    found = []
    with q.open(rows_only=True, lateness=5000) as s:
        s.push("a", {"ts": [0], "k": [7]})
        s.push("b", {"ts": [0], "k": pa.array([None], pa.int64())})
        for first in range(0, rows, 8):
            time = np.arange(first, first + 8)
            s.push("b", {"ts": time, "k": np.full(8, 7)})
        found = s.close()["b"].tolist()
    assert sorted(found) == list(range(1, rows + 1))
