"""Streams pushed in large parts, each ahead of the other: rows wait until they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

SIZES = (1, 60, 300, 1100, 2600)
SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("n", pa.int64())])
Pushes = list[tuple[str, dict[str, Any]]]


@st.composite
def pushes(draw: st.DrawFn, names: str) -> tuple[Pushes, dict[str, int], int]:
    """Rows of each stream in pushes of any size, windows and a lateness."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    start = draw(st.sampled_from([0, -(2**40), 2**62]))
    clocks, come = dict.fromkeys(names, start), []
    lateness = draw(st.sampled_from([0, 0, 9]))
    for number in range(draw(st.integers(1, 7))):
        name = draw(st.sampled_from(names))
        size = draw(st.sampled_from(SIZES))
        times = clocks[name] + random.integers(0, 3, size).cumsum()
        clocks[name] = int(times[-1])
        if lateness and number and draw(st.booleans()):
            times = times - random.integers(0, lateness, size)
        values = {"x": random.random(size), "n": random.integers(0, 100, size)}
        come.append((name, {"t": times} | values))
    return come, {name: draw(st.sampled_from([0, 7, 500, 9000])) for name in names}, lateness


def in_time(come: Pushes, lateness: int) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Of every stream the numbers of its rows that are not late, and their columns."""
    parts: dict[str, list[tuple[str, Any]]] = {name: [] for name, _ in come}
    newest: dict[str, int] = {}
    kept: dict[str, list[Any]] = {name: [] for name in parts}
    for name, rows in come:
        own = np.empty(len(rows["t"]), bool)
        for place, time in enumerate(rows["t"].tolist()):
            own[place] = time >= newest.get(name, time) - lateness
            newest[name] = max(newest.get(name, time), time)
        kept[name].append(own)
        parts[name].append((name, rows))
    found = {}
    for name, own in kept.items():
        numbers = np.flatnonzero(np.concatenate(own))
        columns = {c: np.concatenate([rows[c] for _, rows in parts[name]]) for c in SCHEMA.names}
        found[name] = numbers, {c: column[numbers] for c, column in columns.items()}
    return found


def expected(come: Pushes, windows: dict[str, int], lateness: int, near: Any) -> list[Any]:
    """Pairs of `a` and `b` by comparing everything with everything."""
    rows = in_time(come, lateness)
    if len(rows) < 2:
        return []
    (a, left), (b, right) = rows["a"], rows["b"]
    pairs = []
    for place, number in enumerate(a.tolist()):
        apart = left["t"][place] - right["t"]
        one = {name: column[place] for name, column in left.items()}
        met = (apart >= -windows["a"]) & (apart <= windows["b"]) & near(one, right)
        pairs += [(number, other) for other in b[met].tolist()]
    return sorted(pairs)


def found(come: Pushes, query: wj.Query, lateness: int) -> list[Any]:
    """The rows of each result of a session."""
    results = []
    schemas = dict.fromkeys(query.names, SCHEMA)
    with query.open(schemas=schemas, rows_only=True, lateness=lateness) as session:
        for name, rows in come:
            out = session.push(name, rows)
            results += zip(*(out[name].tolist() for name in query.names), strict=True)
    return sorted(results)


PREDICATES = {
    "reals": (
        lambda a, b: abs(a["x"] - b["x"]) <= 0.01,
        lambda a, b: np.abs(a["x"] - b["x"]) <= 0.01,
    ),
    "integers": (
        lambda a, b: abs(a["n"] - b["n"]) <= 2,
        lambda a, b: np.abs(a["n"] - b["n"]) <= 2,
    ),
    "equal": (lambda a, b: a["n"] == b["n"], lambda a, b: a["n"] == b["n"]),
}


@pytest.mark.parametrize("kind", PREDICATES)
@settings(max_examples=examples(25))
@given(case=pushes("ab"))
def test_pairs_are_those_of_the_definition(kind: str, case: Any) -> None:
    come, windows, lateness = case
    condition, near = PREDICATES[kind]
    a, b = (wj.stream(name, time="t", window=windows[name]) for name in "ab")
    query = wj.join(a, b, on=condition(a, b))
    assert found(come, query, lateness) == expected(come, windows, lateness, near)


@settings(max_examples=examples(15))
@given(case=pushes("abc"))
def test_three_streams_in_large_parts_are_those_in_small_ones(case: Any) -> None:
    come, windows, lateness = case
    a, b, c = (wj.stream(name, time="t", window=min(windows[name], 500)) for name in "abc")
    query = wj.join(a, b, c, on=[abs(a["x"] - b["x"]) <= 0.01, abs(b["x"] - c["x"]) <= 0.01])
    small = [
        (name, {column: values[at : at + 50] for column, values in rows.items()})
        for name, rows in come
        for at in range(0, len(rows["t"]), 50)
    ]
    assert found(come, query, lateness) == found(small, query, lateness)


def test_rows_that_nobody_asks_for_are_forgotten() -> None:
    a, b = (wj.stream(name, time="t", window=100) for name in "ab")
    query = wj.join(a, b, on=abs(a["x"] - b["x"]) <= 0.01)
    held = []
    with query.open(schemas={"a": SCHEMA, "b": SCHEMA}, rows_only=True) as session:
        for number in range(40):
            times = number * 2000 + np.arange(2000)
            rows = {"t": times, "x": times / 1e6, "n": times}
            session.push("a", rows)
            session.advance("b", int(times[-1]))
            held.append(session.metrics["state_bytes"])
    assert held[-1] == held[10]
