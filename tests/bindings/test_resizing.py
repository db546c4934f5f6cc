"""Windows that change while a session runs: exactly at the time that was named."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compare import assert_same_results
from tests.effort import examples

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64()})
SCHEMAS = dict.fromkeys("abc", SCHEMA)
FIRST = {"a": 8, "b": 3, "c": 12}

Change = tuple[int, int]  # from this time on, this length


def query() -> Any:
    a, b, c = (wj.stream(name, time="t", window=FIRST[name]) for name in "abc")
    return wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])


def reach(first: int, changes: list[Change], time: int) -> int:
    """The definition: where a window begins at a time, after the changes up to then."""
    low = time - first
    for number, (at, length) in enumerate(changes):
        if time >= at:
            low = max(time - length, reach(first, changes[:number], at))
    return low


def expected(rows: dict[str, list[tuple[int, int]]], changes: dict[str, list[Change]]) -> Any:
    found = []
    for numbers in product(*(range(len(rows[name])) for name in "abc")):
        members = {name: rows[name][n] for name, n in zip("abc", numbers, strict=True)}
        if len({k for _, k in members.values()}) > 1 or min(members.values())[1] < 0:
            continue
        latest = max(t for t, _ in members.values())
        if all(t >= reach(FIRST[n], changes[n], latest) for n, (t, _) in members.items()):
            found.append(numbers)
    return Counter(found)


MODES = [{}, *({"hosts": 3, "strategy": s, "segment": 4} for s in ("atr", "ctr", "psp", "groups"))]


@pytest.mark.parametrize("options", MODES, ids=lambda o: o.get("strategy", "alone"))
@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 2**32), lateness=st.sampled_from([0, 3]))
def test_results_are_those_of_the_windows_of_their_time(
    options: dict[str, Any], seed: int, lateness: int
) -> None:
    rng = np.random.default_rng(seed)
    rows: dict[str, list[tuple[int, int]]] = {name: [] for name in "abc"}
    changes: dict[str, list[Change]] = {name: [] for name in "abc"}
    got: list[tuple[int, ...]] = []
    with query().open(
        SCHEMAS, lateness=lateness, rows_only=True, on_late="keep", **options
    ) as session:

        def take(found: Any) -> None:
            got.extend(zip(*(found[name].tolist() for name in "abc"), strict=True))

        now = newest = 0
        for _ in range(14):
            if rng.random() < 0.4:
                name = "abc"[int(rng.integers(3))]
                at = max([newest + 1, *(a for a, _ in changes[name])]) + int(rng.integers(0, 9))
                length = int(rng.choice([0, 1, 4, 9, 15, 25]))
                session.set_window(name, length, at=at)
                changes[name].append((at, length))
            for name in "abc":
                n = int(rng.integers(0, 4))
                times = np.sort(now + rng.integers(0, 4, n))
                keys = rng.integers(0, 2, n)
                mark = max((t for t, _ in rows[name]), default=-99) - lateness
                rows[name] += [  # late rows have a number, and join nothing
                    (t, k if t >= mark else -1 - len(rows[name]))
                    for t, k in zip(times.tolist(), keys.tolist(), strict=True)
                ]
                newest = max([newest, *times.tolist()])
                take(session.push(name, {"t": times, "k": keys}))
            now += int(rng.choice([3, 4, 5, 20]))
        take(session.close())
        assert session.metrics["results"] == len(got)
    assert_same_results(got, expected(rows, changes))


@pytest.mark.parametrize("options", [{}, {"hosts": 2, "strategy": "atr"}])
def test_by_default_a_window_changes_after_the_newest_row(options: dict[str, Any]) -> None:
    a, b = (wj.stream(name, time="t", window="10s") for name in "ab")
    schema = pa.schema({"t": pa.timestamp("s"), "k": pa.int64()})
    session = wj.join(a, b, on=a["k"] == b["k"]).open({"a": schema, "b": schema}, **options)
    found = session.push("a", _at([0, 1])).num_rows + session.push("b", _at([1])).num_rows
    session.set_window("a", "5s")
    found += session.push("b", _at([6, 7])).num_rows  # of the row at 1 the first
    session.set_window("a", "20s")
    found += session.push("a", _at([8])).num_rows + session.push("b", _at([27])).num_rows
    found += session.close().num_rows
    # 1 with 0, 1; 6 with 1; 8 with 1, 6, 7; 27 with 8
    assert found == 2 + 1 + 3 + 1
    assert session.metrics["results"] == found


def _at(times: list[int]) -> pa.Table:
    return pa.table({"t": pa.array(times, pa.timestamp("s")), "k": [1] * len(times)})


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("x", 5), wj.QueryError, r"'x' is not a stream of this query"),
        (("a", -5), wj.QueryError, r"-5"),
        (("a", "5s"), wj.SchemaError, r"window '5s' is a duration but time column 't' is"),
    ],
)
def test_wrong_changes_are_refused(change: Any, error: Any, message: str) -> None:
    with query().open(SCHEMAS) as session, pytest.raises(error, match=message):
        session.set_window(*change)


def test_a_time_that_has_come_is_refused() -> None:
    with query().open(SCHEMAS) as session:
        session.push("a", {"t": [5], "k": [1]})
        with pytest.raises(wj.QueryError, match=r"rows of that time or later have come, and"):
            session.set_window("b", 3, at=5)
        session.set_window("b", 3, at=20)
        with pytest.raises(wj.QueryError, match=r"a change at a later time was asked for"):
            session.set_window("b", 4, at=19)
    needs = "set_window needs the schemas of all streams"
    with query().open() as session, pytest.raises(wj.SessionError, match=needs):
        session.set_window("b", 3)


def test_only_inner_joins_change_their_windows() -> None:
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    outer = wj.join(a, b, on=a["k"] == b["k"], how="left")
    only = "set_window is for inner joins without nearest="
    with (
        outer.open({"a": SCHEMA, "b": SCHEMA}) as session,
        pytest.raises(wj.SessionError, match=only),
    ):
        session.set_window("b", 3)


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups"])
def test_a_change_that_is_over_when_a_push_returns_holds_for_its_results(strategy: str) -> None:
    """A push long enough that what is looked after now and then is so between join and results."""
    a, b = (wj.stream(name, time="t", window=1_000) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    chance = np.random.default_rng(4)
    rows = {
        name: {
            "t": np.sort(chance.integers(0, 10_000, 20_000)),
            "k": chance.integers(0, 999, 20_000),
        }
        for name in "ab"
    }
    found = []
    for options in ({}, {"hosts": 3, "strategy": strategy}):
        with query.open({"a": SCHEMA, "b": SCHEMA}, rows_only=True, **options) as session:
            at, count = dict.fromkeys(rows, 0), 0
            session.set_window("a", 300, at=4_750)
            for stop in range(500, 10_500, 500):
                for name, columns in rows.items():
                    upto = int(np.searchsorted(columns["t"], stop))
                    piece = {key: values[at[name] : upto] for key, values in columns.items()}
                    count += len(session.push(name, piece)["a"])
                    at[name] = upto
            count += len(session.close()["a"])
            assert session.metrics["results"] == count
            found.append(count)
    assert found[0] == found[1]


def test_a_push_in_which_a_change_ends_gives_its_results() -> None:
    a, b = (wj.stream(name, time="t", window=300) for name in "ab")
    chance = np.random.default_rng(2)
    rows = {
        name: {"t": np.sort(chance.integers(0, 4_000, 4_000)), "k": chance.integers(0, 200, 4_000)}
        for name in "ab"
    }
    with wj.join(a, b, on=a["k"] == b["k"]).open(
        {"a": SCHEMA, "b": SCHEMA}, rows_only=True
    ) as session:
        at, found = dict.fromkeys(rows, 0), 0
        for stop in range(200, 4_200, 200):
            if stop in (400, 1_600, 2_800):
                session.set_window("b", 500 if stop != 1_600 else 400, at=stop - 50)
            for name, columns in rows.items():
                upto = int(np.searchsorted(columns["t"], stop))
                piece = {key: values[at[name] : upto] for key, values in columns.items()}
                found += len(session.push(name, piece)["a"])
                at[name] = upto
                assert session.metrics["results"] == found
