"""A session chooses indexes by the rows it has seen, and loses nothing when it changes its mind."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from hypothesis import given
from windjoin.kernels.spec import JoinSpec
from windjoin.kernels.statistics import Statistics

from tests.api import open_session, run_session
from tests.cases import SessionCase
from tests.compare import assert_same_results
from tests.oracle import replay
from tests.strategies import sessions

Found = Counter[tuple[int, int]]
WINDOW, BATCH, ROWS = 300, 50, 12_000
HALF = 4500


def rows() -> dict[str, dict[str, Any]]:
    """First two keys and spread values, then many keys and values that are nearly equal."""
    random = np.random.default_rng(4)
    first = np.arange(ROWS) < HALF
    return {
        name: {
            "ts": np.arange(ROWS),
            "k": np.where(first, random.integers(0, 2, ROWS), random.integers(0, 5000, ROWS)),
            "x": np.where(first, random.random(ROWS) * 1000, random.random(ROWS)),
        }
        for name in "ab"
    }


def expected(tables: dict[str, dict[str, Any]]) -> Found:
    found: Found = Counter()
    a, b = tables["a"], tables["b"]
    for i in range(ROWS):
        near = slice(max(i - WINDOW, 0), i + WINDOW + 1)
        passed = (a["k"][i] == b["k"][near]) & (np.abs(a["x"][i] - b["x"][near]) <= 0.5)
        found.update((i, int(j) + near.start) for j in np.flatnonzero(passed))
    return found


def indexes(session: Any) -> list[str]:
    return [order["steps"][0]["index"] for order in session.explain("json")["orders"]]


def test_the_index_follows_the_rows() -> None:
    tables = rows()
    a, b = (wj.stream(name, time="ts", window=WINDOW) for name in "ab")
    join = wj.join(a, b, on=[a["k"] == b["k"], abs(a["x"] - b["x"]) <= 0.5])
    got: Found = Counter()
    seen = []
    with join.open(rows_only=True) as session:
        for begin in range(0, ROWS, BATCH):
            for name, columns in tables.items():
                part = {key: values[begin : begin + BATCH] for key, values in columns.items()}
                out = session.push(name, part)
                got.update(zip(out["a"].tolist(), out["b"].tolist(), strict=True))
            seen.append(indexes(session))
        text, metrics = session.explain(), session.metrics
    runs = [now for now, before in zip(seen, [[], *seen], strict=False) if now != before]
    assert runs == [["hash lists"] * 2, ["grid of cells"] * 2, ["hash lists"] * 2]
    assert "orders chosen anew 2 times from the rows seen" in text
    assert metrics["comparisons"] >= got.total()  # also those that earlier indexes proposed
    assert sum(stream["results"] for stream in metrics["streams"].values()) == got.total()
    assert got == expected(tables)


def test_a_join_that_has_the_right_index_keeps_it() -> None:
    tables = rows()
    a, b = (wj.stream(name, time="ts", window=WINDOW) for name in "ab")
    with wj.join(a, b, on=a["k"] == b["k"]).open(rows_only=True) as session:
        for name, columns in tables.items():
            session.push(name, {key: values[HALF:] for key, values in columns.items()})
        assert "chosen anew" not in session.explain()
        assert session.explain("json")["replanned"] == 0


class Fickle:
    """Statistics that are other ones each time, so that other indexes look best."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(1)

    def __call__(self, spec: JoinSpec, windows: Any) -> Statistics:
        n = len(spec.streams)
        shares = {id(p): float(10 ** self.random.uniform(-6, 0)) for p in spec.predicates}
        return Statistics((1000,) * n, tuple(10 ** self.random.uniform(-3, 3, n)), shares)


@given(sessions())
def test_every_push_returns_what_it_must_while_indexes_change(
    monkeypatch: pytest.MonkeyPatch, session_case: SessionCase
) -> None:
    live, replanning = (import_module(f"windjoin.kernels.{n}") for n in ("live", "replanning"))
    monkeypatch.setattr(replanning, "FIRST_LOOK", 1)
    monkeypatch.setattr(replanning, "next_look", lambda rows: rows + 1)
    monkeypatch.setattr(live, "seen", Fickle())
    monkeypatch.setattr(replanning, "WORTHWHILE", float("inf"))
    monkeypatch.setattr(replanning, "DOUBT", 1.0)
    monkeypatch.setattr(replanning, "SURE", -float("inf"))
    outcome = replay(session_case.case.query, session_case.events(), session_case.lateness)
    results, rejected, rest = run_session(session_case, open_session(session_case))
    for number, (got, owed) in enumerate(zip(results, outcome.results, strict=True)):
        assert_same_results(got.elements(), owed, f"step {number}")
    assert rejected == [[row for row, _ in rows] for rows in outcome.rejected]
    assert not rest
