"""Rows in memory that have next to no results all leave together, and others come in their room."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.pyx.encoding.keys import KeySpace
from windjoin.state.choosing import Counted

from tests.effort import examples
from tests.oracle import Results

ROWS = 6000


def sparse(count: int, window: int, keys: int, seed: int) -> tuple[Any, dict[str, pa.Table]]:
    """Streams of one key with about ``keys`` values, which hardly ever meet; some rows are late."""
    named = [wj.stream(name, time="t", window=window) for name in "abc"[:count]]
    query = wj.join(*named, on=[x["k"] == y["k"] for x, y in pairwise(named)])
    random, tables = np.random.default_rng(seed), {}
    for name in query.names:
        time = np.arange(ROWS) + random.integers(0, 4, ROWS)
        key = random.integers(0, keys, ROWS)
        tables[name] = pa.table({"t": time, "k": key, "n": np.arange(ROWS)})
    return query, tables


def numbers(query: Any, found: pa.Table) -> Results:
    columns = [found.column(f"{name}_n").to_pylist() for name in query.names]
    return Counter(zip(*columns, strict=True))


def limit_of(query: Any, tables: dict[str, pa.Table], part: float) -> int:
    """Bytes of an empty session, and a part of what all rows take."""
    known = {name: table.schema for name, table in tables.items()}
    with query.open(known, lateness=4) as session:
        for start in range(0, ROWS, 100):
            for name, table in tables.items():
                session.push(name, table.slice(start, 100))
            if start == 0:
                empty = session.state_bytes
        return int(empty + part * (session.state_bytes - empty))


@settings(max_examples=examples(12))
@given(
    count=st.sampled_from([2, 3]),
    window=st.sampled_from([500, 3000, 100_000]),
    keys=st.sampled_from([3_000, 100_000]),
    seed=st.integers(0, 99),
    part=st.sampled_from([0.3, 0.6]),
    size=st.sampled_from([20, 300]),
    steps=st.lists(st.sampled_from(["go", "clean", "save"]), min_size=4, max_size=4),
)
def test_rows_that_leave_together_lose_and_double_nothing(
    count: int, window: int, keys: int, seed: int, part: float, size: int, steps: list[str]
) -> None:
    query, tables = sparse(count, window, keys, seed)
    expected = numbers(query, query.run(tables))
    known = {name: table.schema for name, table in tables.items()}
    found: Results = Counter()
    with tempfile.TemporaryDirectory() as folder:
        session = query.open(
            known, lateness=4, memory=limit_of(query, tables, part), spill=f"{folder}/spill"
        )
        for start in range(0, ROWS, size):
            for name, table in tables.items():
                found += numbers(query, session.push(name, table.slice(start, size)))
            step = steps[len(steps) * start // ROWS]
            if start * len(steps) % ROWS >= size * len(steps):
                continue
            if step == "clean":
                for table in session.clean_up():
                    found += numbers(query, table)
            elif step == "save":
                session.save(f"{folder}/snap")
                session.abandon()
                session = wj.restore(query, f"{folder}/snap")
        found += numbers(query, session.close())
    assert found == expected


@pytest.mark.parametrize("rows_only", [False, True])
def test_all_rows_leave_where_hardly_any_had_results(tmp_path: Path, rows_only: bool) -> None:
    query, tables = sparse(3, 10 * ROWS, ROWS, 1)
    known = {name: table.schema for name, table in tables.items()}
    limit = limit_of(query, tables, 0.3)
    session = query.open(known, memory=limit, spill=tmp_path, rows_only=rows_only, lateness=4)
    found, most, empty = 0, 0, 0
    for start in range(0, ROWS, 100):
        for name, table in tables.items():
            results = session.push(name, table.slice(start, 100))
            found += len(results["a"]) if rows_only else results.num_rows
        most = max(most, session.state_bytes)
        empty += session.metrics["streams"]["a"]["state_rows"] <= 100
    memory = session.metrics["memory"]
    assert 3 <= memory["spills"] <= empty + 1
    assert most <= 1.2 * limit
    last = session.close()
    found += len(last["a"]) if rows_only else last.num_rows
    assert found == query.run(tables).num_rows


@pytest.mark.parametrize("advance", [False, True], ids=["rows", "promise"])
@pytest.mark.parametrize("size", [1, 100])
def test_owed_results_do_not_wait_when_time_jumps(tmp_path: Path, size: int, advance: bool) -> None:
    """Rows could come for long without a look, as all others have left memory."""
    query, tables = sparse(3, ROWS, ROWS, 1)
    known = {name: table.schema for name, table in tables.items()}
    session = query.open(known, lateness=4, memory=limit_of(query, tables, 0.3), spill=tmp_path)
    found = 0
    for start in range(0, ROWS, 100):
        for name, table in tables.items():
            found += session.push(name, table.slice(start, 100)).num_rows
    expected = query.run(tables).num_rows
    assert found < expected
    assert session.metrics["memory"]["generations"] > 0
    for push in range(2):  # the first lets time jump
        for name, table in tables.items():
            if advance:
                session.advance(name, 10 * ROWS)
            late = table.slice(0, size).set_column(0, "t", [np.full(size, 10 * ROWS + push)])
            keys = np.arange(size) + 10 * ROWS * (1 + query.names.index(name))
            found += session.push(name, late.set_column(1, "k", [keys])).num_rows
    assert found == expected
    assert session.metrics["memory"]["rows_on_disk"] == 0
    session.abandon()


@pytest.mark.parametrize(
    ("groups", "results", "concentrated"),
    [
        (range(300), 4000, False),  # as many anywhere
        (range(300), 20, False),  # so few that most groups have none
        (range(20), 4000, True),
        (range(20), 60, True),
        (range(120), 4000, True),
        (range(1), 0, False),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_whether_few_groups_have_most_results(
    groups: range, results: int, concentrated: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    of_rows = random.choice(groups, 10_000)  # that have any
    counted = Counted(300)
    rows = np.sort(random.integers(0, 10_000, results))
    for part in np.array_split(rows, 7):
        counted.note(part)
    assert counted.concentrated(lambda some: of_rows[some], 0) is concentrated
    assert not counted.concentrated(lambda some: of_rows[some], 10_000)  # all have gone
    assert sum(map(len, counted.taken(0)[:1])) > 0 or not results  # asking forgets nothing


@pytest.mark.parametrize("hot", [False, True])
def test_all_rows_leave_unless_some_groups_have_the_results(tmp_path: Path, hot: bool) -> None:
    """Rows have less than one result each."""
    a, b = (wj.stream(name, time="t", window=10 * ROWS) for name in "ab")
    query, random = wj.join(a, b, on=a["k"] == b["k"]), np.random.default_rng(1)
    session = query.open(memory=2_000_000, spill=tmp_path)
    left = 0
    for start in range(0, 10 * ROWS, 200):
        for name in "ab":
            keys = random.integers(0, 10_000, 200)
            if hot:
                some = random.random(200) < 0.1
                keys = np.where(some, keys % 40, 10**9 + start * 10 + np.arange(200))
            session.push(name, pa.table({"t": np.full(200, start), "k": keys}))
        left += session.metrics["streams"]["a"]["state_rows"] <= 200
    assert session.metrics["memory"]["spills"] > 3
    assert (left <= 2) if hot else (left >= 3), left
    session.abandon()


def test_wide_columns_do_not_exceed_the_limit_meanwhile(tmp_path: Path) -> None:
    query, tables = sparse(2, 10 * ROWS, 100 * ROWS, 1)
    text = pa.array([bytes(1000)] * ROWS, pa.binary(1000))
    wide = {name: table.append_column("text", text) for name, table in tables.items()}
    known = {name: table.schema for name, table in wide.items()}
    session = query.open(known, lateness=4, memory=2_000_000, spill=tmp_path)
    most, found = 0, 0
    for start in range(0, ROWS, 50):
        for name, table in wide.items():
            found += session.push(name, table.slice(start, 50)).num_rows
            most = max(most, session.state_bytes)
    assert session.metrics["memory"]["spills"] >= 3
    assert most <= 1.2 * 2_000_000
    assert found + session.close().num_rows == query.run(wide).num_rows


def test_rows_that_have_results_stay(tmp_path: Path) -> None:
    query, tables = sparse(2, 10 * ROWS, 200, 1)
    known = {name: table.schema for name, table in tables.items()}
    session = query.open(known, memory=limit_of(query, tables, 0.5), spill=tmp_path, lateness=4)
    least = ROWS
    for start in range(0, ROWS, 100):
        for name, table in tables.items():
            session.push(name, table.slice(start, 100))
        if session.metrics["memory"]["spills"]:
            least = min(least, session.metrics["streams"]["a"]["state_rows"])
    assert session.metrics["memory"]["spills"] >= 1
    assert least > 500
    session.abandon()


@pytest.mark.parametrize("spread", [1, 2**40])
def test_a_space_that_was_cleared_is_as_a_new_one(spread: int) -> None:
    keys = np.random.default_rng(0).permutation(5000) * spread
    space, other = KeySpace(), KeySpace()
    space.encode(keys)
    before = space.nbytes
    space.clear()
    assert (space.used, space.n_codes, space.nbytes) == (0, 0, before)
    assert space.encode(keys[::-1].copy()).tolist() == other.encode(keys[::-1].copy()).tolist()
    assert space.nbytes == before


def test_what_a_save_finishes_leaves_with_the_next_push(tmp_path: Path) -> None:
    query, tables = sparse(2, 10 * ROWS, 30_000, 1)
    known = {name: table.schema for name, table in tables.items()}
    session = query.open(
        known, lateness=4, memory=limit_of(query, tables, 0.3), spill=tmp_path / "spill"
    )
    before = now = 0
    for start in range(0, ROWS, 100):
        for name, table in tables.items():
            session.push(name, table.slice(start, 100))
        before, now = now, session.metrics["memory"]["spills"]
        if before == now >= 2:  # rows come the compiled way
            break
    session.push_many({name: table.slice(start + 100, 1) for name, table in tables.items()})
    assert session._allowance.rows == 0  # rows that were counted are not taken off it
    next(iter(session.clean_up()))
    session.save(tmp_path / "snap")
    rows = tables["a"].slice(start + 101)
    assert session.push("a", rows.slice(0, 1)).num_rows >= 2  # what the save found, too
    assert session.push("a", rows.slice(1, 1)).num_rows <= 1
    session.abandon()


def test_a_restored_session_learns_from_rows_that_come_to_it(tmp_path: Path) -> None:
    """Those before it had results elsewhere."""
    a, b = (wj.stream(name, time="t", window=10**6) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    session = query.open(memory="64MB", spill=tmp_path / "spill")
    for start in range(0, 5_000, 1_000):
        some = pa.table({"t": np.arange(start, start + 1_000), "k": np.arange(1_000)})
        for name in "ab":
            session.push(name, some)
    session.save(tmp_path / "saved")
    session.abandon()
    again = wj.restore(query, tmp_path / "saved")
    keeper = again._memory
    assert keeper is not None
    assert (keeper.residence.came, keeper.residence.rows) == (0, 10_000)
    again.close()
