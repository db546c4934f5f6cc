"""Lines of live equality indexes: their times are 32 bits of times that may be anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st

SCALES = (1, 1000, 2**27, 2**33, 2**45)
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
Pushes = list[tuple[str, dict[str, Any]]]


@st.composite
def pushes(draw: st.DrawFn) -> tuple[Pushes, tuple[int, int], int]:
    """Rows of few keys on two streams, windows and a lateness, with leaps of any width."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from(SCALES))
    start = draw(st.sampled_from([-(2**62), -5, 0, 2**40, 2**61]))
    clocks, found = {"a": start, "b": start}, []
    lateness = draw(st.sampled_from([0, 3, 40])) * scale
    for number in range(draw(st.integers(1, 25))):
        name = draw(st.sampled_from("ab"))
        n = draw(st.sampled_from([1, 1, 2, 30, 300]))
        steps = random.integers(0, 2, n) * random.integers(0, 3 * scale, n)
        if draw(st.integers(0, 9)) == 0:
            steps[0] += 2**33 if scale < 2**33 else 100 * scale
        times = clocks[name] + steps.cumsum()
        clocks[name] = int(times[-1])
        if lateness and number:
            times = times - random.integers(0, lateness, n)
        found.append((name, {"t": times, "k": random.integers(0, 1 + n // 4, n)}))
    windows = draw(st.integers(0, 60)) * scale, draw(st.integers(0, 60)) * scale
    return found, windows, lateness


def expected(come: Pushes, windows: tuple[int, int], lateness: int) -> list[tuple[int, int]]:
    """All pairs of rows in time for each other, by comparing everything with everything."""
    rows: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
    pairs = []
    newest = dict.fromkeys("ab", -(2**63))
    for name, arrived in come:
        for t, k in zip(arrived["t"].tolist(), arrived["k"].tolist(), strict=True):
            number = len(rows[name])
            if t < newest[name] - lateness:
                rows[name].append((2**80, -1))
                continue
            newest[name] = max(newest[name], t)
            rows[name].append((t, k))
            for other, (u, own) in enumerate(rows["b" if name == "a" else "a"]):
                a, b = (t, u) if name == "a" else (u, t)
                if own == k and -windows[0] <= a - b <= windows[1]:
                    pairs.append((number, other) if name == "a" else (other, number))
    return sorted(pairs)


def found(
    come: Pushes, windows: tuple[int, int], lateness: int, band: bool = False
) -> list[tuple[int, int]]:
    """The same by a session."""
    a, b = (wj.stream(s, time="t", window=w) for s, w in zip("ab", windows, strict=True))
    query = wj.join(a, b, on=(a["k"] - b["k"]).between(0, 0) if band else a["k"] == b["k"])
    schemas = {"a": SCHEMA, "b": SCHEMA}
    pairs: list[tuple[int, int]] = []
    with query.open(schemas=schemas, rows_only=True, lateness=lateness) as session:
        for name, rows in come:
            out = session.push(name, rows)
            pairs += zip(out["a"].tolist(), out["b"].tolist(), strict=True)
    return sorted(pairs)


@given(pushes(), st.booleans())
def test_times_of_any_width_are_compared_exactly(case: Any, band: bool) -> None:
    assert found(*case, band) == expected(*case)


@st.composite
def of_three(draw: st.DrawFn) -> tuple[Pushes, tuple[int, ...], int]:
    """Rows of three streams in turn, so close that steps of 32 bits say too little or enough."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    window = draw(st.sampled_from([3, 2**20, 2**33, 2**45]))
    late = draw(st.booleans())
    come = []
    for number in range(draw(st.integers(1, 5))):
        for name in "abc":
            n = draw(st.sampled_from([1, 5, 25]))
            times = number * max(window, 8) + random.integers(-3, 4, n)
            times = times if late else np.sort(times)
            come.append((name, {"t": times, "k": random.integers(0, 1 + n // 4, n)}))
    windows = tuple(window + draw(st.integers(-2, 2)) for _ in "abc")
    return come, windows, 10 if late else 0


def triples(come: Pushes, windows: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All rows in time for each other, of which none is late."""
    rows = {
        name: [
            row
            for other, arrived in come
            if other == name
            for row in zip(arrived["t"].tolist(), arrived["k"].tolist(), strict=True)
        ]
        for name in "abc"
    }

    def meet(one: int, t: int, k: int, other: int, u: int, own: int) -> bool:
        return k == own and -windows[one] <= t - u <= windows[other]

    return [
        (a, b, c)
        for a, x in enumerate(rows["a"])
        for b, y in enumerate(rows["b"])
        if meet(0, *x, 1, *y)
        for c, z in enumerate(rows["c"])
        if meet(0, *x, 2, *z) and meet(1, *y, 2, *z)
    ]


@given(of_three())
def test_times_that_a_hop_goes_on_with_are_exact(case: Any) -> None:
    come, windows, lateness = case
    a, b, c = (wj.stream(s, time="t", window=w) for s, w in zip("abc", windows, strict=True))
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])
    found: list[tuple[int, ...]] = []
    with query.open(dict.fromkeys("abc", SCHEMA), rows_only=True, lateness=lateness) as session:
        for name, rows in come:
            out = session.push(name, rows)
            found += zip(*(out[name].tolist() for name in "abc"), strict=True)
    assert sorted(found) == triples(come, windows)


@st.composite
def near_the_ends(draw: st.DrawFn) -> tuple[Pushes, tuple[int, int], int]:
    """Rows a few ticks from both ends of long windows, where 32 bits of a time say too little."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    window = draw(st.sampled_from([2**33, 2**40, 2**50]))
    late = draw(st.booleans())
    found = []
    for number in range(draw(st.integers(2, 8))):
        for name in "ab":
            n = draw(st.sampled_from([1, 5, 40]))
            times = number * window + random.integers(-3, 4, n)
            times = times if late else np.sort(times)
            found.append((name, {"t": times, "k": random.integers(0, 1 + n // 4, n)}))
    return found, (window, window + draw(st.integers(-2, 2))), 10 if late else 0


@given(near_the_ends(), st.booleans())
def test_times_within_a_step_are_compared_exactly(case: Any, band: bool) -> None:
    assert found(*case, band) == expected(*case)


@pytest.mark.parametrize("scale", SCALES)
def test_a_key_with_more_rows_than_a_line_holds(scale: int) -> None:
    times = np.arange(40, dtype=np.int64) * scale
    rows = {"t": times, "k": np.zeros(40, np.int64)}
    come = [("a", rows), ("b", rows), ("a", {"t": times + 40 * scale, "k": rows["k"]})]
    windows = 20 * scale, 30 * scale
    assert found(come, windows, 0) == expected(come, windows, 0)


def test_times_leave_the_reach_of_lines_and_memory_stays_as_it_is() -> None:
    a, b = (wj.stream(s, time="t", window=1000) for s in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    held, results = [], 0
    with query.open(schemas={"a": SCHEMA, "b": SCHEMA}, rows_only=True) as session:
        for number in range(60):
            times = number * 2**30 + np.arange(400)
            rows = {"t": times, "k": np.arange(400) % 40}
            session.push("a", rows)
            results += len(session.push("b", rows)["a"])
            held.append(session.metrics["state_bytes"])
    assert results == 60 * 40 * 100
    assert held[-1] == held[20]


def test_lists_that_grow_alike_leave_little_behind() -> None:
    """Rows of every key come evenly: segments that lists left would serve nobody."""
    keys, each = 400, 100
    a, b = (wj.stream(name, time="t", window=keys * each) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    with query.open(dict.fromkeys("ab", SCHEMA), rows_only=True) as session:
        for turn in range(3 * each):
            times = np.arange(turn * keys, (turn + 1) * keys)
            rows = {"t": times, "k": np.random.default_rng(turn).permutation(keys)}
            session.push("a", rows)
            asked = session.push("b", {"t": times[-1:], "k": rows["k"][:1]})
            assert (asked["a"] % keys == 0).sum() >= 1  # the row of this turn, which was its first
            assert len(asked["a"]) == min(turn + 1, each)
        held = session.metrics["streams"]["a"]["state_rows"]
        index = session._live.windows[0].index_bytes
    assert held <= keys * each + keys
    # sixteen bytes a row; lists have up to half as much room again, and so has what holds them
    assert index <= 2.3 * 16 * held + (128 << 10)
