"""Late rows are kept without a word, told of once for each stream, or refused with their push."""

from __future__ import annotations

import pickle
import re
import warnings
from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given

from tests.api import build, rejected_rows, schemas, table_rows, user_time
from tests.cases import SessionCase
from tests.compare import assert_same_results
from tests.oracle import replay
from tests.strategies import sessions

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64())])
SCHEMAS = {"a": SCHEMA, "b": SCHEMA}
TOLD = (
    "stream 'a', row 2 of the push: its time 5 is before the stream's watermark 9, so it is late;"
    " lateness=4 or more would have kept it."
)
KEPT = (
    " Late rows are kept in `rejected` and not joined; this is said once for each stream, with"
    ' on_late="keep" not at all'
)
REFUSED = (
    " Nothing of the push was taken: push it again without its late rows, which are those in this"
    " error's `rows`"
)


def query(**options: Any) -> wj.Query:
    a, b = (wj.stream(name, time="t", window=10, **options) for name in ("a", "b"))
    return wj.join(a, b, on=a["k"] == b["k"])


def rows(*times: Any) -> dict[str, list[Any]]:
    return {"t": list(times), "k": [1] * len(times)}


def plain(*times: int) -> dict[str, Any]:
    return {"t": np.array(times, np.int64), "k": np.ones(len(times), np.int64)}


def exactly(message: str) -> str:
    return f"^{re.escape(message)}$"


@pytest.mark.parametrize("hosts", [None, 2])
@pytest.mark.parametrize("given_schemas", [SCHEMAS, None])
def test_the_first_late_row_of_every_stream_warns_once(given_schemas: Any, hosts: int | None):
    with query().open(given_schemas, hosts=hosts) as session:
        with pytest.warns(wj.LateRowWarning, match=exactly(TOLD + KEPT)) as told:
            session.push("a", rows(8, 9, 5, 4))
        assert [one.filename for one in told] == [__file__]
        session.push("a", rows(3))
        session.push("b", rows(7))
        with pytest.warns(wj.LateRowWarning, match="stream 'b', row 0 of the push: its time 1"):
            session.push("b", rows(1))
        session.push("b", rows(2))
        assert session.metrics["late"] == 5
    assert [session.rejected[name].column("t").to_pylist() for name in "ab"] == [[5, 4, 3], [1, 2]]


@pytest.mark.parametrize("make", [rows, plain])
@pytest.mark.parametrize("rows_only", [False, True])
def test_rows_that_come_in_time_say_nothing(make: Any, rows_only: bool):
    with query().open(SCHEMAS, rows_only=rows_only) as session:
        for time in range(3):
            for name in "ab":
                session.push(name, make(time, time))
        assert session.metrics["late"] == 0


def test_keep_says_nothing():
    with query().open(SCHEMAS, on_late="keep") as session:
        session.push("a", rows(9, 5))
        assert session.metrics["late"] == session.rejected["a"].num_rows == 1


@pytest.mark.parametrize("hosts", [None, 2])
@pytest.mark.parametrize("rows_only", [False, True])
@pytest.mark.parametrize("given_schemas", [SCHEMAS, None])
def test_raise_refuses_the_push_whole(given_schemas: Any, rows_only: bool, hosts: int | None):
    options: dict[str, Any] = {"on_late": "raise", "rows_only": rows_only, "hosts": hosts}
    found = []
    with query().open(given_schemas, **options) as session:
        found.append(session.push("a", plain(1, 2)))
        if given_schemas is not None:
            found.append(session.push("b", plain(2)))
        before = session.metrics
        with pytest.raises(wj.LateRowError, match=exactly(TOLD + REFUSED)) as refused:
            session.push("a", plain(8, 9, 5, 9, 4))
        assert (refused.value.stream, refused.value.rows) == ("a", [2, 4])
        assert session.metrics == before
        found.append(session.push("a", plain(8, 9, 9)))
        found.append(session.push("b", plain(9)))
        assert session.metrics["late"] == 0
        found.append(session.close())
    b = [9] if given_schemas is None else [2, 9]
    whole = query().indices({"a": rows(1, 2, 8, 9, 9), "b": rows(*b)})
    if rows_only:
        assert pairs(found, "a", "b") == pairs([whole], "a", "b")
    else:
        assert len(pairs(found, "a_t", "b_t")) == len(whole["a"])


def pairs(found: list[Any], *names: str) -> list[tuple[int, ...]]:
    columns = [[one[name].tolist() if isinstance(one, dict) else one[name].to_pylist()
                for name in names] for one in found if len(one)]  # fmt: skip
    return sorted(pair for parts in columns for pair in zip(*parts, strict=True))


def test_the_error_crosses_processes():
    error = pickle.loads(pickle.dumps(wj.LateRowError("late", "a", [3])))
    assert (str(error), error.stream, error.rows) == ("late", "a", [3])


def test_a_warning_made_an_error_refuses_the_push_whole():
    with query().open(SCHEMAS) as session:
        session.push("b", rows(9))
        before = session.metrics
        with pytest.raises(wj.LateRowWarning):
            session.push("a", rows(9, 5))
        assert session.metrics == before
        assert session.push("a", rows(9, 5)).num_rows == 1


@pytest.mark.parametrize(
    ("unit", "lateness", "enough"), [("ms", "1s", "4.5s"), ("us", 0, "4.5s"), ("ns", "2s", "4.5s")]
)
def test_the_lateness_told_is_written_as_durations_are(unit: str, lateness: Any, enough: str):
    stamps = [datetime(2026, 1, 5, 9), datetime(2026, 1, 5, 8, 59, 55, 500_000)]
    schema = pa.schema([("t", pa.timestamp(unit)), ("k", pa.int64())])
    a, b = (wj.stream(name, time="t", window="10s") for name in ("a", "b"))
    asked = wj.join(a, b, on=a["k"] == b["k"])
    late = pa.table(rows(*stamps), schema=schema)
    known = {"a": schema, "b": schema}
    told = "its time 2026-01-05 08:59:55.5 is before the stream's watermark 2026-01-05 0"
    with asked.open(known, lateness=lateness) as session:
        with pytest.warns(wj.LateRowWarning, match=told) as said:
            session.push("a", late)
        assert 'lateness="4s500ms" or more' in str(said[0].message)
    with asked.open(known, lateness=enough) as session:
        session.push("a", late)


def test_times_with_a_zone_are_told_in_utc():
    schema = pa.schema([("t", pa.timestamp("s", "Europe/Paris")), ("k", pa.int64())])
    a, b = (wj.stream(name, time="t", window="10s") for name in ("a", "b"))
    late = pa.table(rows(1767603601, 1767603600), schema=schema)
    session = wj.join(a, b, on=a["k"] == b["k"]).open({"a": schema, "b": schema})
    with pytest.warns(wj.LateRowWarning, match="its time 2026-01-05 09:00:00Z is before"):
        session.push("a", late)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("lateness", "enough"), [(2000, "5000"), ("2s", '"5s"')])
def test_integer_times_with_units_keep_theirs(learned: bool, lateness: Any, enough: str):
    a = wj.stream("a", time="t", window="10s", unit="s")
    b = wj.stream("b", time="t", window="10s", unit="ms")
    asked = wj.join(a, b, on=a["k"] == b["k"])
    with asked.open(None if learned else SCHEMAS, lateness=lateness) as session:
        session.push("a", rows(10, 8))
        with pytest.warns(wj.LateRowWarning, match="its time 5 is before .* watermark 8,") as told:
            session.push("a", rows(5))
    assert f"lateness={enough} or more" in str(told[0].message)


@pytest.mark.parametrize("given_schemas", [SCHEMAS, None])
def test_no_lateness_is_told_where_a_promise_was_broken(given_schemas: Any):
    with query().open(given_schemas, lateness=100) as session:
        session.advance("a", 7)
        session.advance("a", 3)
        told = "watermark 7, so it is late; `advance` had promised that no such row would come."
        with pytest.warns(wj.LateRowWarning, match=re.escape(told)):
            session.push("a", rows(9, 6))
        session.push("b", rows(9))
        session.finish("b")
        told = "late; `finish` had said that no more rows of this stream would come."
        with pytest.warns(wj.LateRowWarning, match=re.escape(told)):
            session.push("b", rows(10))


def test_what_waits_for_schemas_is_judged_as_it_comes():
    with query().open(on_late="raise") as session:
        session.push("a", rows(9))
        with pytest.raises(wj.LateRowError):
            session.push("a", rows(5))
        with pytest.raises(wj.SchemaError, match="cannot be compared"):
            session.push("b", {"t": [8], "k": ["1"]})
        session.push("b", rows(7))  # what did not fit has left no mark
        with pytest.raises(wj.LateRowError):
            session.push("b", rows(6))
        assert session.metrics["rows_in"] == 2


def test_a_wrong_time_column_is_refused_before_other_streams_are_seen():
    with query().open() as session:
        with pytest.raises(wj.SchemaError, match="stream 'a' has no column 't'"):
            session.push("a", {"k": [1]})
        assert session.push("a", rows(1)).num_rows == 0
        assert session.push("b", rows(1)).num_rows == 1


@pytest.mark.parametrize("on_late", ["no", None, True])
def test_on_late_is_one_of_three(on_late: Any):
    message = f'on_late={on_late!r}: give on_late="keep", "warn" or "raise"'
    with pytest.raises(wj.QueryError, match=exactly(message)):
        query().open(on_late=on_late)


def pushed(session: Any, name: str, table: pa.Table) -> tuple[pa.Table, list[int]]:
    """Results of a push, without the rows that were refused if there were such, and those."""
    try:
        return session.push(name, table), []
    except wj.LateRowError as error:
        kept = np.setdiff1d(np.arange(table.num_rows), error.rows)
        return session.push(name, table.take(kept)), table.take(error.rows)["row"].to_pylist()


@given(sessions())
def test_pushes_without_what_was_refused_complete_the_same(session_case: SessionCase):
    import datetime as module

    case = session_case.case
    lateness = eval(session_case.lateness_source, {"datetime": module})
    outcome = replay(case.query, session_case.events(), session_case.lateness)
    refused: list[list[int]] = [[] for _ in case.streams]
    known = schemas(case)
    with build(case).open(known, lateness=lateness, on_late="raise") as session:
        for number, step in enumerate(session_case.steps):
            stream = case.streams[step.stream]
            if step.time is not None:
                session.advance(stream.name, user_time(session_case, step.stream, step.time))
                continue
            found, late = pushed(session, stream.name, stream.table(step.start, step.stop))
            refused[step.stream] += late
            got = Counter(table_rows(case.names, found))
            assert_same_results(got.elements(), outcome.results[number], f"step {number}")
        assert session.metrics["late"] == 0
        for number, name in enumerate(case.names):
            reasons = dict(outcome.rejected[number])
            assert sorted(refused[number]) == [r for r, why in reasons.items() if why == "late"]
            untimed = [row for row, why in reasons.items() if why == "null time"]
            assert rejected_rows(session, name) == untimed


@given(sessions())
def test_learning_schemas_changes_nothing_of_what_is_told(session_case: SessionCase):
    import datetime as module

    case = session_case.case
    lateness = eval(session_case.lateness_source, {"datetime": module})
    said = []
    for known in (schemas(case), None):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with build(case).open(known, lateness=lateness) as session:
                for step in session_case.steps:
                    stream = case.streams[step.stream]
                    if step.time is None:
                        session.push(stream.name, stream.table(step.start, step.stop))
                    else:
                        time = user_time(session_case, step.stream, step.time)
                        session.advance(stream.name, time)
        said.append([str(one.message).partition(" is before")[0] for one in told])
    assert said[0] == said[1]
