"""Hosts that share what memory there is: spilled, relocated and forced out, each result once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.diffusion.balance import Balance, HostState, Relocate, SpillNow, most_productive
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.relocation import Gate

from tests.state.test_spilling import band, equality, expected, named_rows, pushed, rows

KEYED = ("auto", "atr", "ctr", "psp")


def ticking(step: float = 1.0) -> Callable[[], float]:
    """A clock that goes on whenever somebody looks."""
    now = [0.0]

    def clock() -> float:
        now[0] += step
        return now[0]

    return clock


@pytest.mark.parametrize("strategy", KEYED)
@pytest.mark.parametrize("count", [2, 3])
def test_hosts_spill_and_owe(strategy: str, count: int, tmp_path: Path) -> None:
    query = equality(count)
    tables = {n: rows(100, seed, keys=8, most=100) for seed, n in enumerate(query.names)}
    known = {n: t.schema for n, t in tables.items()}
    asked = wj.Memory(1, span="3s", spill=tmp_path)
    session = query.open(
        known, memory=asked, lateness=3, hosts=3, strategy=strategy, clock=ticking()
    )
    assert pushed(query, tables, session, clean_every=70) == expected(query, tables)
    metrics = session.metrics
    assert metrics["memory"]["spills"] > 5
    assert metrics["memory"]["results_cleaned_up"] > 50
    assert metrics["results"] == expected(query, tables).total()


@pytest.mark.parametrize("strategy", ["auto", "ctr", "psp"])
def test_hosts_without_a_common_key_spill_stretches_of_time(strategy: str, tmp_path: Path) -> None:
    query = band()
    tables = {n: rows(150, seed, most=150) for seed, n in enumerate(query.names)}
    known = {n: t.schema for n, t in tables.items()}
    session = query.open(known, memory=1, spill=tmp_path, hosts=2, strategy=strategy)
    assert pushed(query, tables, session, clean_every=70) == expected(query, tables)
    assert session.metrics["memory"]["spills"] > 10


@pytest.mark.parametrize("adaptation", ["lazy", "active", "none"])
def test_groups_move_while_rows_are_in_flight(adaptation: str, tmp_path: Path) -> None:
    """Pushes of many segments each: moved groups change hosts between two of them."""
    query = equality(3)
    tables = {n: rows(9000, seed, keys=2000, most=900) for seed, n in enumerate(query.names)}
    known = {n: t.schema for n, t in tables.items()}
    asked = wj.Memory("1GB", groups=64, span="1s", adaptation=adaptation, theta_d=1.0)
    session = query.open(
        known, memory=asked, spill=tmp_path, hosts=3, segment=7, rows_only=True, clock=ticking()
    )
    assert pushed(query, tables, session, size=600) == expected(query, tables)
    memory = session.metrics["memory"]
    assert (memory["relocations"] > 0) == (adaptation != "none")
    assert (memory["relocated_rows"] > 0) == (adaptation != "none")


def test_relocation_evens_memory_out(tmp_path: Path) -> None:
    """All keys of one host come more often: half of the difference moves, and again."""
    a, b = (wj.stream(n, time="t", window=10_000) for n in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    shares = {}
    for adaptation in ("none", "lazy"):
        now = [0.0]
        session = query.open(
            dict.fromkeys("ab", schema),
            memory=wj.Memory("1GB", span="45s", adaptation=adaptation, groups=60),
            spill=tmp_path / adaptation,
            hosts=2,
            clock=lambda now=now: now[0],
        )
        probe = np.arange(500)
        session.push("a", {"t": np.zeros(500, np.int64), "k": probe})
        session.push("b", {"t": np.zeros(500, np.int64), "k": probe})
        session.advance("a", 1)
        session.advance("b", 1)
        table = session._live.routing.router.table()
        groups = session._memory.residence.groups_of(0, probe)
        hot = probe[table[groups] == 0]
        for step in range(1, 60):
            now[0] += 10.0
            keys = np.random.default_rng(step).choice(hot, 400)
            for name in "ab":
                session.push(name, {"t": np.full(400, step * 50), "k": keys})
        hosts = session.metrics["memory"]["hosts"]
        held = sorted(host["bytes"] for host in hosts.values())
        shares[adaptation] = held[0] / held[1]
        done = session.metrics["memory"]["relocations"]
        assert done <= 600 / 45
        assert "adaptation " + adaptation in str(session.explain())
        session.abandon()
    assert shares["none"] < 0.5
    assert shares["lazy"] > 0.7


def test_active_disk_spills_where_little_comes_of_it(tmp_path: Path) -> None:
    a, b = (wj.stream(n, time="t", window=500) for n in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])
    now = [0.0]
    session = query.open(
        dict.fromkeys("ab", schema),
        memory=wj.Memory(2_500_000, span="45s", groups=40, theta_d=0.3),
        adaptation="active",
        spill=tmp_path,
        hosts=2,
        clock=lambda: now[0],
    )
    probe = np.arange(4000)
    first = pa.table({"t": np.zeros(4000, np.int64), "k": probe, "n": probe})
    session.push("a", first)
    groups = session._memory.residence.groups_of(0, probe)
    of_host = session._live.routing.router.table()[groups]
    rich, poor = probe[of_host == 0][:5], probe[of_host == 1]
    found: Counter[Any] = Counter()
    tables: dict[str, list[pa.Table]] = {"a": [first], "b": []}
    random = np.random.default_rng(1)
    for step in range(1, 40):
        now[0] += 15.0
        for name in "ab":
            keys = np.concatenate([random.choice(rich, 20), random.choice(poor, 150)])
            number = np.arange(170) + 170 * (step - 1) + (4000 if name == "a" else 0)
            table = pa.table({"t": np.full(170, step * 10), "k": keys, "n": number})
            tables[name].append(table)
            found.update(named_rows(session.push(name, table)))
    memory = session.metrics["memory"]
    assert memory["forced_spills"] > 0
    assert memory["hosts"][1]["spills"] >= memory["forced_spills"]
    found.update(named_rows(session.close()))
    assert found == expected(query, {n: pa.concat_tables(t) for n, t in tables.items()})


def test_a_snapshot_of_hosts_with_rows_on_disk_goes_on(tmp_path: Path) -> None:
    query = equality(3)
    tables = {n: rows(240, seed, most=150) for seed, n in enumerate(query.names)}
    known = {n: t.schema for n, t in tables.items()}
    session = query.open(known, memory=1, spill=tmp_path / "disk", lateness=3, hosts=3)
    found: Counter[Any] = Counter()
    for start in range(0, 240, 10):
        for name, table in tables.items():
            found.update(named_rows(session.push(name, table.slice(start, 10))))
        if start % 60 == 50:
            session.save(tmp_path / "snap")
            session.abandon()
            session = wj.restore(query, tmp_path / "snap")
    found.update(named_rows(session.close()))
    assert found == expected(query, tables)


# -- decisions -------------------------------------------------------------------------------------


def test_hosts_spill_when_memory_is_even_and_results_are_not() -> None:
    hosts = {0: HostState(100.0, 9.0), 1: HostState(90.0, 1.0)}
    assert Balance("lazy").decide(hosts, now=50.0) is None
    active = Balance("active")
    assert active.decide(hosts, now=50.0, beyond=40.0) == SpillNow(1, 27.0)
    assert active.decide(hosts, now=95.0, beyond=40.0) == SpillNow(1, 13.0)  # the bound
    assert active.decide(hosts, now=140.0, beyond=40.0) is None
    uneven = {0: HostState(100.0, 9.0), 1: HostState(20.0, 1.0)}
    assert active.decide(uneven, now=190.0, beyond=90.0) == Relocate(0, 1, 40.0)


def test_balance_refuses_what_nobody_knows() -> None:
    with pytest.raises(RoutingError, match="adaptation 'eager' is none of"):
        Balance("eager")


def test_groups_that_move_are_the_most_productive_that_fit() -> None:
    sizes, results = np.array([4.0, 6.0, 5.0, 0.0]), np.array([0.0, 11.0, 9.0, 99.0])
    assert most_productive(sizes, results, 10.0).tolist() == [0, 1]
    assert most_productive(sizes, results, 5.0).tolist() == [2]
    assert most_productive(sizes, results, 1.0).tolist() == []


def test_a_gate_keeps_the_order(tmp_path: Path) -> None:
    class Inbox:
        """What comes, in order."""

        def __init__(self) -> None:
            self.got: list[Any] = []

        def put(self, message: Any, ticket: Any) -> None:
            self.got.append(message)

        def send(self, message: Any, ticket: Any) -> None:
            self.got.append(message)

    class Ticket:
        class left:
            """Counts nothing."""

            @staticmethod
            def add(more: int) -> None: ...

    inbox = Inbox()
    gate = Gate(inbox)  # type: ignore[arg-type]
    for message in "ab":
        gate.send(message, Ticket)  # type: ignore[arg-type]
    assert inbox.got == []
    gate.open()
    gate.send("c", Ticket)  # type: ignore[arg-type]
    assert inbox.got == ["a", "b", "c"]


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": 1, "adaptation": "lazy"}, "adaptation='lazy' needs hosts=, the hosts that"),
        ({"adaptation": "lazy"}, "adaptation='lazy' needs memory=, such as"),
        ({"memory": 1, "hosts": 2, "adaptation": "eager"}, "adaptation='eager'; there are"),
        ({"memory": wj.Memory(1, groups=1), "hosts": 2}, "groups=1 are fewer than the 2 hosts"),
        (
            {"memory": 1, "hosts": 2, "adaptation": "lazy", "strategy": "atr"},
            "adaptation='lazy' moves and spills partition groups of a key that all streams share,"
            " but strategy='atr' deals rows out by time; leave it out",
        ),
    ],
)
def test_open_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError) as caught:
        equality().open({n: rows(1, 0).schema for n in "ab"}, **options)
    assert message in str(caught.value)


def test_adaptation_needs_a_common_key() -> None:
    with pytest.raises(wj.QueryError, match="but no equality ties all streams of this query"):
        band().open({n: rows(1, 0).schema for n in "ab"}, memory=1, hosts=2, adaptation="active")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adaptation": "some"}, "adaptation='some'; there are"),
        ({"theta_d": 2}, "theta_d=2: give least over most memory, 0 to 1"),
        ({"theta_r": 0.5}, "theta_r=0.5: give most over least results, 1 or more"),
        ({"span": 3}, "3 \\(int\\) is not a duration"),
    ],
)
def test_memory_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError, match=message.replace("(", "(").replace("\\\\", "\\")):
        wj.Memory("1GB", **options)
