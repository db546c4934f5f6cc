"""Joins on hosts of this process: every strategy gives what one host gives."""

from __future__ import annotations

import gc
import json
import re
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.diffusion.cluster import Cluster
from windjoin.diffusion.errors import HostError
from windjoin.hosted_tables import join_on_hosts
from windjoin.kernels.hosted import HostJoin
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.statistics import unseen
from windjoin.output import table_fetch
from windjoin.strategies import Hosts

from tests.api import build, index_rows, run_session, schemas, table_rows
from tests.cases import Case, SessionCase
from tests.compare import assert_same_results
from tests.oracle import Results, join, ordered, replay
from tests.strategies import cases, sessions

ANY_QUERY = ("single", "atr", "ctr", "psp", "atr-fixed", "ctr-random", "auto")
lengths = st.none() | st.sampled_from([1, 2, 3, 7, 16, 40, 1000])  # sixteenths of a window


def on_hosts(case: Case, hosts: Hosts) -> list[tuple[int, ...]]:
    """Results of a case; ``hosts.segment`` in sixteenths of its longest window."""
    tables = case.tables()
    bound = build(case).bind({name: table.schema for name, table in tables.items()})
    data = list(tables.values())
    rows = [bound.prepare(number, table).rows for number, table in enumerate(data)]
    if hosts.segment is not None:
        longest = max(stream.window for stream in bound.spec.streams)
        hosts = replace(hosts, segment=longest * hosts.segment // 16 + 1)
    found, _, _, _ = join_on_hosts(bound.spec_with(table_fetch(data)), rows, hosts, None)
    return list(zip(*(column.tolist() for column in found), strict=True))


@pytest.mark.parametrize("strategy", ANY_QUERY)
@given(case=cases(most=4), count=st.integers(1, 5), segment=lengths)
def test_hosts_together_give_the_oracles_results(
    strategy: str, case: Case, count: int, segment: int | None
) -> None:
    got = on_hosts(case, Hosts(count, strategy, segment))
    assert_same_results(got, join(case.query, case.rows()))


@pytest.mark.parametrize("strategy", ANY_QUERY)
@pytest.mark.usefixtures("small_blocks")
@given(case=cases(most=4), count=st.integers(1, 5), segment=lengths)
def test_blocks_of_partial_results_may_end_anywhere(
    strategy: str, case: Case, count: int, segment: int | None
) -> None:
    got = on_hosts(case, Hosts(count, strategy, segment))
    assert_same_results(got, join(case.query, case.rows()))


@given(case=cases(most=3), count=st.integers(1, 4), strategy=st.sampled_from(ANY_QUERY))
def test_run_and_indices_take_hosts(case: Case, count: int, strategy: str) -> None:
    query, expected = build(case), join(case.query, case.rows())
    table = query.run(case.tables(), hosts=count, strategy=strategy, ordered=True)
    assert table_rows(case.names, table) == ordered(expected, case.rows())
    rows = query.indices(case.tables(), hosts=count, strategy=strategy)
    assert_same_results(index_rows(case, rows), expected)
    assert query.metrics["results"] == expected.total()


A, B = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
SAME = wj.join(A, B, on=A["k"] == B["k"])
BAND = wj.join(A, B, on=abs(A["k"] - B["k"]) <= 1)
TABLES = {"a": {"t": [1, 4], "k": [7, 8]}, "b": {"t": [5, 6], "k": [8, 9]}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": 0}, r"hosts=0: give a number of hosts, 1 to 4096, or None"),
        ({"hosts": 2.0}, r"hosts=2.0: give a number"),
        ({"hosts": 2, "strategy": "atrr"}, r"strategy='atrr' is not known; did you mean 'atr'\?"),
        ({"strategy": "atr"}, r"strategy='atr' needs hosts=, the number of hosts"),
        ({"segment": 5}, r"segment=5 needs hosts="),
        ({"hosts": 2, "threads": 2}, r"threads=2 and hosts=2: every host is a thread"),
        ({"hosts": 2, "segment": 0}, r"segment=0 is shorter than the unit of the times"),
        ({"hosts": 2, "segment": -1}, r"segment=-1 is negative; give 0 or more"),
        ({"hosts": 2, "segment": "1s"}, r"segment='1s': the streams have integer times"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError, match=message):
        SAME.run(TABLES, **options)


def test_groups_need_a_key_of_all_streams() -> None:
    assert SAME.run(TABLES, hosts=2, strategy="groups").num_rows == 1
    with pytest.raises(wj.QueryError, match="no equality ties all streams of this query together"):
        BAND.run(TABLES, hosts=2, strategy="groups")


def test_a_segment_far_too_short_is_refused() -> None:
    a, b = (wj.stream(name, time="t", window=10**6) for name in ("a", "b"))
    tables = {name: {"t": [0, 10**6], "k": [1, 1]} for name in ("a", "b")}
    with pytest.raises(wj.QueryError, match=r"1 ticks are too short for a window of 1000000; it"):
        wj.join(a, b, on=a["k"] == b["k"]).run(tables, hosts=2, segment=1)


def test_random_says_that_it_loses_results() -> None:
    times = list(range(200))
    tables = {name: {"t": times, "k": [1] * 200} for name in ("a", "b")}
    whole = SAME.run(tables).num_rows
    found = SAME.run(tables, hosts=4, strategy="random", segment=2).num_rows
    report = SAME.metrics["cluster"]
    assert found < whole
    assert not report["exact"]
    assert report["expected_loss"] == pytest.approx(1 - found / whole, abs=0.15)


# -- sessions -------------------------------------------------------------------------------------


def open_on_hosts(session_case: SessionCase, **options: Any) -> Any:
    import datetime

    lateness = eval(session_case.lateness_source, {"datetime": datetime})
    query = build(session_case.case)
    late = {"lateness": lateness, "on_late": "keep"}
    return query.open(schemas(session_case.case), **late, **options)


def total(results: list[Results]) -> Results:
    return sum(results, Counter())


@pytest.mark.parametrize("strategy", ANY_QUERY)
@given(session_case=sessions(most=3), count=st.integers(1, 4))
def test_a_session_on_hosts_gives_all_results_in_the_end(
    strategy: str, session_case: SessionCase, count: int
) -> None:
    session = open_on_hosts(session_case, hosts=count, strategy=strategy)
    results, rejected, rest = run_session(session_case, session)
    outcome = replay(session_case.case.query, session_case.events(), session_case.lateness)
    assert_same_results((total(results) + rest).elements(), total(outcome.results))
    assert rejected == [[row for row, _ in rows] for rows in outcome.rejected]


@st.composite
def lives(draw: Any) -> list[tuple[str, int]]:
    """What happens in a session: rows, hosts that come and go."""
    kinds = ["rows"] * 6 + ["join", "leave", "lose"]
    return draw(
        st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 9)), min_size=4, max_size=20)
    )


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups", "single", "ctr-random"])
@given(life=lives(), seed=st.integers(0, 2**32), segment=st.integers(1, 12))
def test_hosts_come_and_go_and_nothing_is_lost_or_doubled(
    strategy: str, life: list[tuple[str, int]], seed: int, segment: int
) -> None:
    rng = np.random.default_rng(seed)
    streams = [wj.stream(name, time="t", window=w) for name, w in (("a", 8), ("b", 3), ("c", 12))]
    a, b, c = streams
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"], a["x"] < c["x"]])
    schema = pa.schema({"t": pa.int64(), "k": pa.int64(), "x": pa.int64()})
    kept: dict[str, list[pa.Table]] = {name: [schema.empty_table()] for name in query.names}
    found = []
    with query.open(
        dict.fromkeys(query.names, schema), rows_only=True, ordered=True,
        lateness=4, hosts=3, strategy=strategy, segment=segment,
    ) as session:  # fmt: skip
        now = 0
        for kind, number in life:
            hosts = session.hosts
            if kind == "join" and len(hosts) < 6:
                assert session.add_host(1.0 + number % 2) not in hosts
            elif kind in ("leave", "lose") and len(hosts) > 1:
                session.remove_host(hosts[number % len(hosts)], lost=kind == "lose")
            elif kind == "rows":
                for name in query.names:
                    n = int(rng.integers(0, 9))
                    times = np.sort(now + rng.integers(0, 7, n))
                    rows = {"t": times, "k": rng.integers(0, 2, n), "x": rng.integers(0, 9, n)}
                    kept[name].append(pa.table(rows, schema=schema))
                    found.append(session.push(name, kept[name][-1]))
                now += int(rng.choice([3, 7, 7, 50]))
        found.append(session.close())
    tables = {name: pa.concat_tables(parts) for name, parts in kept.items()}
    got = [row for part in found for row in zip(*(part[n].tolist() for n in "abc"), strict=True)]
    whole = query.indices(tables)
    assert_same_results(got, Counter(zip(*(whole[n].tolist() for n in "abc"), strict=True)))
    times = {name: table.column("t").to_pylist() for name, table in tables.items()}
    latest = [
        max((times[n][row], s, row) for s, (n, row) in enumerate(zip("abc", rows, strict=True)))
        for rows in got
    ]
    assert latest == sorted(latest)


def test_masters_switch_while_a_session_runs() -> None:
    a, b = (wj.stream(name, time="t", window=20) for name in ("a", "b"))
    query = wj.join(a, b, on=a["k"] == b["k"])
    every: dict[str, dict[str, list[int]]] = {name: {"t": [], "k": []} for name in ("a", "b")}
    schema = pa.schema({"t": pa.int64(), "k": pa.int64()})
    found = 0
    given_schemas = dict.fromkeys("ab", schema)
    with query.open(given_schemas, hosts=3, strategy="atr", segment=5) as session:
        for step in range(400):
            busy = "ab"[step // 100 % 2]
            for name in "ab":
                n = 12 if name == busy else 1
                rows = {"t": [step] * n, "k": [(step + i) % 5 for i in range(n)]}
                for column, values in rows.items():
                    every[name][column] += values
                found += session.push(name, rows).num_rows
        found += session.close().num_rows
        assert session.metrics["cluster"]["switches"] >= 2
    assert found == query.run(every).num_rows


@pytest.mark.parametrize("ordered", [False, True])
def test_a_promise_completes_results_that_the_next_push_returns(ordered: bool) -> None:
    schema = pa.schema({"t": pa.int64(), "k": pa.int64()})
    given_schemas = dict.fromkeys("ab", schema)
    for rows_only in (False, True):
        options = {"rows_only": rows_only, "ordered": ordered, "hosts": 2, "segment": 4}
        with SAME.open(given_schemas, **options) as session:
            session.push("a", {"t": [1], "k": [7]})
            assert not size(session.push("b", {"t": [2], "k": [7]}))
            session.advance("a", 50)
            session.advance("b", 50)
            assert size(session.push("a", {"t": [60], "k": [9]})) == 1
            assert session.metrics["results"] == 1
            session.push("b", {"t": [61], "k": [9]})
            assert size(session.close()) == 1
            assert session.metrics["results"] == 2


def size(results: Any) -> int:
    return len(results["a"]) if isinstance(results, dict) else results.num_rows


def test_iterate_gives_what_is_left_at_the_end() -> None:
    batches = [{"t": [t, t + 1], "k": [1, 2]} for t in range(0, 30, 2)]
    whole = sum(table.num_rows for table in SAME.iterate({"a": batches, "b": batches}))
    found = [t.num_rows for t in SAME.iterate({"a": batches, "b": batches}, hosts=2)]
    assert sum(found) == whole > 0


def test_metrics_and_explain_say_who_did_what() -> None:
    times = list(range(300))
    tables = {name: {"t": times, "k": [t % 7 for t in times]} for name in ("a", "b")}
    SAME.run(tables, hosts=3, strategy="ctr")
    report = SAME.metrics["cluster"]
    assert (report["strategy"], [host["host"] for host in report["hosts"]]) == ("ctr", [0, 1, 2])
    assert sum(host["load"] for host in report["hosts"]) == pytest.approx(1)
    stored = sum(host["rows_stored"] for host in report["hosts"])
    assert report["replication"] == stored / 600 >= 1
    assert sum(host["results"] for host in report["hosts"]) == SAME.metrics["results"]
    assert SAME.metrics["comparisons"] == sum(h["comparisons"] for h in report["hosts"]) > 0
    text = SAME.explain()
    assert "hosts: 3, strategy ctr" in text
    assert "because strategy='ctr' was asked for" in text
    assert "host 2: " in text
    assert json.loads(json.dumps(SAME.explain("json")))["cluster"] == report
    SAME.run(tables, hosts=4)
    assert "of work per row" in SAME.explain()
    with SAME.open({n: pa.table(t).schema for n, t in tables.items()}, hosts=2) as session:
        session.push("a", tables["a"])
        session.push("b", tables["b"])
        assert "hosts: 2, strategy" in session.explain()
        assert session.metrics["cluster"]["epochs"] > 0


def test_results_come_in_the_same_order_every_time() -> None:
    rng = np.random.default_rng(3)
    tables = {
        name: {"t": np.sort(rng.integers(0, 500, 900)), "k": rng.integers(0, 20, 900)}
        for name in ("a", "b")
    }
    for strategy in ("atr", "ctr", "psp", "groups"):
        first, second = (SAME.indices(tables, hosts=4, strategy=strategy) for _ in range(2))
        assert all(np.array_equal(first[name], second[name]) for name in "ab")


# -- what fails -----------------------------------------------------------------------------------


def host_threads() -> int:
    gc.collect()
    return sum(thread.name.startswith("windjoin-host") for thread in threading.enumerate())


def settles_at(count: int) -> bool:
    deadline = time.monotonic() + 10
    while host_threads() > count and time.monotonic() < deadline:
        time.sleep(0.01)
    return host_threads() == count


def test_threads_end_with_what_started_them() -> None:
    before = host_threads()
    SAME.run(TABLES, hosts=3)
    assert settles_at(before)
    session = SAME.open({name: pa.table(t).schema for name, t in TABLES.items()}, hosts=3)
    session.push("a", TABLES["a"])
    assert host_threads() == before + 3
    del session  # never closed
    assert settles_at(before)


def test_a_function_that_cannot_be_compiled_is_a_mistake_in_the_query() -> None:
    query = wj.join(A, B, on=wj.udf(lambda x, y: eval(f"{x} > {y}"), A["k"], B["k"]))
    before = host_threads()
    with pytest.raises(wj.QueryError):
        query.run(TABLES, hosts=2)
    assert settles_at(before)


class Failing(HostJoin):
    """A host whose third probe fails."""

    error: Exception = wj.DataError("price is out of range")
    left = 3

    def extend(self, *args: Any) -> Any:
        Failing.left -= 1
        if Failing.left < 0:
            raise Failing.error
        return super().extend(*args)


def push_for_long(session: Any) -> None:
    for step in range(0, 200, 10):
        session.push("a", {"t": [step], "k": [1]})
        session.push("b", {"t": [step], "k": [1]})


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (wj.DataError("price is out of range"), wj.DataError, "price is out of range"),
        (KeyError("no such price"), wj.ClusterError, "KeyError: 'no such price'"),
        (MemoryError("no memory for 16 keys"), MemoryError, "no memory for 16 keys"),
        (MemoryError(), MemoryError, "no memory"),
    ],
)
def test_an_error_says_on_which_host_and_segment(
    error: Exception, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windjoin.clustered.HostJoin", Failing)
    monkeypatch.setattr(Failing, "error", error)
    monkeypatch.setattr(Failing, "left", 3)
    place = r" \(on host \d, segment \[\d+, \d+\) of stream '[ab]'\)"
    before = host_threads()
    with SAME.open({name: pa.table(t).schema for name, t in TABLES.items()}, hosts=2) as session:
        with pytest.raises(kind, match=re.escape(message) + place):
            push_for_long(session)
        with pytest.raises(wj.SessionError, match="this session ended when a push into it"):
            session.push("a", {"t": [500], "k": [1]})
    assert settles_at(before)


class Forgetting(HostJoin):
    """A host that once cannot sweep what it forgets."""

    failed = False

    def expire(self, stream: int, horizon: int) -> None:
        if not Forgetting.failed:
            Forgetting.failed = True
            raise MemoryError("no memory for 16 keys")
        super().expire(stream, horizon)


def test_a_host_that_failed_while_nobody_waited_is_heard_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("windjoin.clustered.HostJoin", Forgetting)
    monkeypatch.setattr(Forgetting, "failed", False)
    rows = {"t": np.arange(2_000), "k": np.arange(2_000) % 7}
    with pytest.raises(MemoryError, match=r"no memory for 16 keys \(on host \d, segment"):
        SAME.run({"a": rows, "b": rows}, hosts=2, segment=10)


def test_a_host_that_fails_while_others_come_ends_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = SAME.open({name: pa.table(t).schema for name, t in TABLES.items()}, hosts=2)
    monkeypatch.setattr(Cluster, "drain", failing_drain)
    with pytest.raises(wj.ClusterError, match="KeyError: 'no such price'"):
        session.add_host()
    with pytest.raises(wj.SessionError, match="this session ended when a push into it"):
        session.add_host()


def failing_drain(_: Cluster) -> None:
    raise HostError("host 0, segment [0, 1)") from KeyError("no such price")


def test_what_a_router_refuses_is_an_error_of_this_package() -> None:
    given_schemas = {name: pa.table(t).schema for name, t in TABLES.items()}
    with SAME.open(given_schemas, hosts=2, strategy="atr") as session:
        session.remove_host(1)
        with pytest.raises(wj.ClusterError, match="host 0 is the last one that takes work"):
            session.remove_host(0)
        with pytest.raises(wj.ClusterError, match="there is no host 7"):
            session.remove_host(7, lost=True)
    without = SAME.open(given_schemas)
    with pytest.raises(wj.SessionError, match="need a session that was opened with hosts="):
        without.add_host()
    with pytest.raises(wj.QueryError, match="ordered=True needs hosts=: without, results leave"):
        SAME.open(ordered=True)
    with pytest.raises(wj.QueryError, match="strategy='ring' is not known"):
        SAME.open(hosts=2, strategy="ring")
    assert issubclass(wj.ClusterError, wj.WindjoinError)


class Noting:
    """An index that notes what it is told."""

    n_keys = 0

    def __init__(self) -> None:
        self.horizons: list[int] = []

    def expire_before(self, horizon: int) -> None:
        self.horizons.append(horizon)


def test_an_index_is_not_told_to_go_back_after_rows_were_given_away() -> None:
    """A ring passes rows on that are later than the horizon of the whole join."""
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    bound = wj.join(a, b, on=a["k"] == b["k"]).bind({"a": schema, "b": schema})
    windows = LiveJoin(bound.spec).windows
    host, index = HostJoin(bound.spec, windows, unseen(bound.spec)), Noting()
    host.windows[0].indexes["noting"] = index  # type: ignore[index, assignment]
    for horizon in (5, 9, 7, 12):
        host.expire(0, horizon)
    assert index.horizons == [5, 9, 12]
