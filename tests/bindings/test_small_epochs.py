"""Epochs of few rows are joined by whoever pushes them, others by the hosts' own threads."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.diffusion import caller
from windjoin.diffusion.worker import Worker

from tests.compare import assert_same_results

STRATEGIES = ["atr", "ctr", "psp", "groups", "single"]
ALWAYS, NEVER = float("inf"), 0.0


@pytest.fixture
def handled_by(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """By the name of the thread, how many messages it handled."""
    threads: Counter[str] = Counter()
    handle = Worker.handle

    def noted(worker: Worker, message: Any, ticket: Any) -> None:
        threads[threading.current_thread().name] += 1
        handle(worker, message, ticket)

    monkeypatch.setattr(Worker, "handle", noted)
    return threads


def query(strategy: str) -> wj.Query:
    names = "abc" if strategy in ("ctr", "psp") else "ab"
    streams = [wj.stream(name, time="t", window=60) for name in names]
    on = [one["k"] == other["k"] for one, other in pairwise(streams)]
    return wj.join(*streams, on=on)


def tables(names: tuple[str, ...], rows: int, seed: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(seed)
    return {
        name: pa.table({"t": np.cumsum(rng.poisson(2, rows)), "k": rng.integers(0, 12, rows)})
        for name in names
    }


def pushed(joined: wj.Query, come: dict[str, pa.Table], strategy: str) -> list[tuple[int, ...]]:
    """Results of pushes of few rows, in their order, while hosts come and go."""
    rng = np.random.default_rng(1)
    schemas = {name: table.schema for name, table in come.items()}
    found: list[Any] = []
    with joined.open(
        schemas, lateness=10, rows_only=True, hosts=2, strategy=strategy, ordered=True
    ) as session:
        for start in range(0, 600, 20):
            for name, table in come.items():
                found.append(session.push(name, table.slice(start, 20)))
            if rng.random() < 0.2:
                session.add_host()
            elif rng.random() < 0.2 and len(session.hosts) > 1:
                session.remove_host(session.hosts[-1], lost=bool(rng.random() < 0.5))
        found.append(session.close())
    return [row for one in found for row in zip(*(c.tolist() for c in one.values()), strict=True)]


@pytest.mark.parametrize("small", [ALWAYS, NEVER])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_whoever_joins_them_results_are_the_same(
    strategy: str, small: float, handled_by: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller, "SMALL_SECONDS", small)
    joined = query(strategy)
    come = tables(joined.names, 600, seed=STRATEGIES.index(strategy))
    got = pushed(joined, come, strategy)
    whole = joined.indices(come)
    expected = Counter(zip(*(whole[name].tolist() for name in joined.names), strict=True))
    assert_same_results(got, expected)
    here = handled_by[threading.current_thread().name]
    if small == NEVER:
        assert here == 0
    else:
        assert here > 5


def test_many_rows_go_to_the_threads_of_hosts(
    handled_by: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller, "SMALL_SECONDS", 1e-3)
    told: list[tuple[int, float]] = []
    learn = caller.Caller.learn

    def as_if(self: caller.Caller, rows: int, seconds: float) -> None:
        told.append((rows, seconds))
        learn(self, rows, rows * 1e-6)  # a microsecond each, on any machine

    monkeypatch.setattr(caller.Caller, "learn", as_if)
    joined = query("atr")
    schemas = dict.fromkeys(joined.names, pa.schema({"t": pa.int64(), "k": pa.int64()}))

    def push(first: int, last: int, rows: int) -> tuple[int, int]:
        """Messages that this thread handled, and those of the hosts."""
        before, mine = handled_by.total(), handled_by[threading.current_thread().name]
        times = np.sort(np.random.default_rng(rows).integers(first, last, rows))
        for name in joined.names:
            session.push(name, {"t": times, "k": np.arange(rows)})
        here = handled_by[threading.current_thread().name] - mine
        return here, handled_by.total() - before - here

    with joined.open(schemas, hosts=2, strategy="atr", segment=100, rows_only=True) as session:
        here, there = push(0, 400, 100)
        assert here == 0 < there  # nobody knows yet what rows cost
        here, there = push(400, 800, 100)
        assert here > 0 == there
        assert push(800, 1200, 20_000)[1] > 0
        push(1200, 1600, 100)
        here, there = push(1600, 2000, 100)
        assert here > 0 == there
    assert all(seconds > 0 for rows, seconds in told if rows)


def test_what_fails_here_is_told_as_if_it_had_failed_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caller, "SMALL_SECONDS", ALWAYS)
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    joined = wj.join(a, b, on=wj.udf(lambda x, y: 1 // (x - y) >= 0, a["k"], b["k"]))
    schemas = dict.fromkeys("ab", pa.schema({"t": pa.int64(), "k": pa.int64()}))
    with joined.open(schemas, hosts=2, rows_only=True, segment=5) as session:
        for time in range(0, 100, 10):
            session.push("a", {"t": [time], "k": [1]})
            session.push("b", {"t": [time + 1], "k": [2]})
        session.push("a", {"t": [100], "k": [2]})
        session.push("b", {"t": [101], "k": [2]})
        with pytest.raises(wj.FunctionError, match="division by zero"):
            session.push_many({name: {"t": [120], "k": [1]} for name in "ab"})
    assert session.closed
