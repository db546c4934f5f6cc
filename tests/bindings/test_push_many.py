"""Rows of several streams pushed together, and small batches gathered, give what they must."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.push_many
from hypothesis import given
from hypothesis import strategies as st
from windjoin import iterate

from tests.api import open_session, rejected_rows, table_rows, user_time
from tests.cases import SessionCase, Step
from tests.compare import assert_same_results
from tests.oracle import Results, replay
from tests.strategies import sessions

A, B = (wj.stream(name, time="t", window=20) for name in "ab")
QUERY = wj.join(A, B, on=A["k"] == B["k"])
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])
SCHEMAS = dict.fromkeys("ab", SCHEMA)


def table(seed: int, rows: int = 3000) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 5 * rows, rows))
    return pa.table({"t": times, "k": rng.integers(0, 9, rows), "n": np.arange(rows)})


TABLES = {name: table(seed, rows) for seed, (name, rows) in enumerate([("a", 3000), ("b", 2000)])}


def rows(found: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(found["a_n"].to_pylist(), found["b_n"].to_pylist(), strict=True))


def grouped(steps: tuple[Step, ...], ends: set[int]) -> list[list[Step]]:
    """Pushes in a row until a promise, or one of some places; rows of a stream put together."""
    groups: list[list[Step]] = []
    for place, step in enumerate(steps):
        if step.time is not None:
            groups += [[step], []]
            continue
        if not groups or place in ends:
            groups.append([])
        group = groups[-1]
        for at, other in enumerate(group):
            if other.stream == step.stream:
                group[at] = Step(step.stream, other.start, step.stop)
                break
        else:
            group.append(step)
    return [group for group in groups if group]


@given(
    stretch=st.sampled_from([3, 1 << 13]),
    with_schemas=st.booleans(),
    session_case=sessions(),
    ends=st.sets(st.integers(0, 20), max_size=4),
)
def test_pushed_together_rows_join_as_one_by_one(
    stretch: int, with_schemas: bool, session_case: SessionCase, ends: set[int]
) -> None:
    case, got = session_case.case, Counter[tuple[int, ...]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windjoin.push_many, "STRETCH", stretch)
        session = open_session(session_case, with_schemas=with_schemas)
        for group in grouped(session_case.steps, ends):
            if group[0].time is not None:
                time = user_time(session_case, group[0].stream, group[0].time)
                session.advance(case.names[group[0].stream], time)
                continue
            tables = {
                case.names[one.stream]: case.streams[one.stream].table(one.start, one.stop)
                for one in group
            }
            found = session.push_many(tables)
            got += Counter(table_rows(case.names, found) if found.num_rows else [])
    outcome = replay(case.query, session_case.events(), session_case.lateness)
    expected: Results = sum(outcome.results, Counter())
    assert_same_results(got.elements(), expected)
    if session.rejected:
        late = [[row for row, _ in of] for of in outcome.rejected]
        assert [rejected_rows(session, name) for name in case.names] == late


@pytest.mark.parametrize("options", [{}, {"hosts": 2}, {"rows_only": True}])
def test_every_kind_of_session_takes_rows_together(options: dict[str, Any]) -> None:
    expected = rows(QUERY.run(TABLES))
    with QUERY.open(SCHEMAS, **options) as session:
        found: list[tuple[int, int]] = []
        for start in range(0, 3000, 700):
            some = {name: one.slice(start, 700) for name, one in TABLES.items()}
            results = session.push_many(some)
            if isinstance(results, dict):
                found += zip(*(column.tolist() for column in results.values()), strict=True)
            else:
                found += rows(results)
        last = session.close()
        found += [] if isinstance(last, dict) else rows(last)
    assert sorted(found) == expected


def test_results_come_in_order_of_time_and_windows_stay_small(monkeypatch) -> None:
    monkeypatch.setattr(windjoin.push_many, "STRETCH", 100)
    with QUERY.open(SCHEMAS) as session:
        found = session.push_many(TABLES)
        times = np.maximum(found["a_t"].to_numpy(), found["b_t"].to_numpy())
        assert (np.diff(times) >= 0).all()
        assert len(found) > 1000
        of_a = session.metrics["streams"]["a"]
        assert of_a["expired"] > 1900  # b ends where two thirds of a have come
        assert session.push_many({}).num_rows == 0


def test_rows_pushed_together_are_refused_together() -> None:
    late = pa.table({"t": [1], "k": [1], "n": [0]})
    with QUERY.open(SCHEMAS, on_late="raise") as session:
        session.push("b", {"t": [9], "k": [1], "n": [0]})
        with pytest.raises(wj.LateRowError, match="stream 'b', row 0 of the push: its time 1"):
            session.push_many({"a": late, "b": late})
        with pytest.raises(wj.SchemaError, match="column 'k' is string"):
            session.push_many({"a": late, "b": {"t": [9], "k": ["x"], "n": [0]}})
        with pytest.raises(wj.QueryError, match="'c' is not a stream of this query"):
            session.push_many({"a": late, "c": late})
        assert session.metrics["rows_in"] == 1
        assert session.push_many({"a": {"t": [10], "k": [1], "n": [5]}})["a_n"].to_pylist() == [5]


def test_schemas_that_do_not_fit_are_refused_together() -> None:
    good, bad = {"t": [1], "k": [1]}, {"t": [1], "k": ["x"]}
    with QUERY.open() as session:
        with pytest.raises(wj.SchemaError, match="k"):
            session.push_many({"a": good, "b": bad})
        assert session.metrics["rows_in"] == 0
        assert session.push_many({"a": good, "b": good}).num_rows == 1


def test_push_many_says_what_it_takes() -> None:
    with (
        QUERY.open(SCHEMAS) as session,
        pytest.raises(wj.QueryError, match=r"push_many got a list; give a dictionary .* of a, b"),
    ):
        session.push_many([TABLES["a"]])  # type: ignore[arg-type]
    with pytest.raises(wj.SessionError, match="this session is closed"):
        session.push_many({"a": TABLES["a"]})


def batches(name: str) -> list[pa.RecordBatch]:
    made: list[pa.RecordBatch] = TABLES[name].to_batches(max_chunksize=7)
    return made


@pytest.mark.parametrize("batch_rows", [1, 50, 10**6])
def test_gathered_batches_join_as_they_came(batch_rows: int) -> None:
    found = list(QUERY.iterate({name: batches(name) for name in "ab"}, batch_rows=batch_rows))
    assert rows(pa.concat_tables(found)) == rows(QUERY.run(TABLES))


@pytest.mark.parametrize("batch_rows", [1, 50, 10**6])
def test_asynchronous_batches_are_gathered_too(batch_rows: int) -> None:
    async def source(name: str) -> AsyncIterator[pa.RecordBatch]:
        for number, batch in enumerate(batches(name)):
            if number % 5 == 0:
                await asyncio.sleep(0)
            yield batch

    async def collect() -> list[pa.Table]:
        sources = {name: source(name) for name in "ab"}
        return [one async for one in QUERY.aiterate(sources, batch_rows=batch_rows)]

    found = asyncio.run(collect())
    assert rows(pa.concat_tables(found)) == rows(QUERY.run(TABLES))


def test_a_source_that_is_ahead_is_joined_in_few_steps(monkeypatch) -> None:
    pushed: list[int] = []
    own = iterate.one_table

    def counted(come: list[Any], stream: str) -> Any:
        together = own(come, stream)
        pushed.append(together.num_rows)
        return together

    monkeypatch.setattr(iterate, "AHEAD", 60.0)
    monkeypatch.setattr(iterate, "one_table", counted)
    sources = {name: batches(name) for name in "ab"}
    with QUERY.iterate(sources, schemas=SCHEMAS, batch_rows=210) as results:
        assert sum(found.num_rows for found in results) == QUERY.run(TABLES).num_rows
    assert (len(pushed), pushed.count(210)) == (25, 23)


def test_a_slow_source_is_joined_as_it_comes(monkeypatch) -> None:
    monkeypatch.setattr(iterate, "AHEAD", 0.0)
    one = {"t": [1], "k": [1], "n": [1]}
    results = QUERY.iterate({"a": [one] * 9, "b": [one]}, schemas=SCHEMAS, batch_rows=100)
    next(results)
    assert results.metrics["rows_in"] == 2


def test_batch_rows_is_a_number_of_rows() -> None:
    for wrong in (0, -3, True, 1.5):
        with pytest.raises(wj.QueryError, match=f"batch_rows={wrong}: give how many rows"):
            QUERY.iterate({"a": [], "b": []}, batch_rows=wrong)  # type: ignore[arg-type]


def test_batches_of_different_schemas_are_not_gathered() -> None:
    odd = [{"t": [1], "k": [1]}, {"t": [2], "k": ["x"]}]
    with pytest.raises(wj.InputError, match="stream 'a': batches of different schemas cannot be"):
        list(QUERY.iterate({"a": odd, "b": []}, batch_rows=5))
