"""Sessions: what every push returns, what is rejected, and that forgetting rows loses nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api import (
    build,
    index_rows,
    metric,
    open_session,
    rejected_rows,
    run_session,
    schemas,
    table_rows,
)
from tests.cases import Case, SessionCase, Step, tiny
from tests.compare import assert_same_results
from tests.oracle import TIME, Apply, Column, Literal, Results, join, replay
from tests.strategies import sessions
from tests.values import KINDS

INT = KINDS["int64"]
SAME_KEY = Apply("==", (Column(0, "k"), Column(1, "k")))


def expected(session_case: SessionCase):
    return replay(session_case.case.query, session_case.events(), session_case.lateness)


def total(results: list[Results]) -> Results:
    return sum(results, Counter())


@given(sessions())
def test_every_push_returns_what_its_rows_complete(session_case: SessionCase):
    outcome = expected(session_case)
    results, rejected, rest = run_session(session_case, open_session(session_case))
    for number, (got, owed) in enumerate(zip(results, outcome.results, strict=True)):
        assert_same_results(got.elements(), owed, f"step {number}")
    assert rejected == [[row for row, _ in rows] for rows in outcome.rejected]
    assert not rest


@given(sessions())
def test_pushes_and_close_together_equal_the_batch_join(session_case: SessionCase):
    case = session_case.case
    results, rejected, rest = run_session(session_case, open_session(session_case))
    for stream, numbers in zip(case.streams, rejected, strict=True):
        for number in numbers:
            stream.stored[number] = {**stream.stored[number], TIME: None}
    batch = index_rows(case, build(case).indices(case.tables()))
    assert_same_results((total(results) + rest).elements(), Counter(batch))


def without_promises(session_case: SessionCase) -> SessionCase:
    pushes = tuple(step for step in session_case.steps if step.time is None)
    return replace(session_case, steps=pushes)


@given(sessions().map(without_promises))
def test_schemas_are_learned_from_the_first_pushes(session_case: SessionCase):
    session, got = open_session(session_case, with_schemas=False), Counter()
    for step in session_case.steps:
        stream = session_case.case.streams[step.stream]
        table = session.push(stream.name, stream.table(step.start, step.stop))
        got += Counter(table_rows(session_case.case.names, table) if table.num_rows else [])
    assert_same_results(got.elements(), total(expected(session_case).results))


@given(sessions())
def test_results_do_not_depend_on_the_split_into_pushes(session_case: SessionCase):
    single = [
        Step(step.stream, row, row + 1) if step.time is None else step
        for step in session_case.steps
        for row in (range(step.start, step.stop) if step.time is None else [0])
    ]
    by_row = replace(session_case, steps=tuple(single))
    coarse, rejected, _ = run_session(session_case, open_session(session_case))
    fine, rejected_by_row, _ = run_session(by_row, open_session(by_row))
    assert_same_results(total(coarse).elements(), total(fine))
    assert rejected == rejected_by_row


@given(sessions(), st.randoms(use_true_random=False))
def test_results_do_not_depend_on_the_interleaving_of_streams(session_case: SessionCase, random):
    streams = [[s for s in session_case.steps if s.stream == n] for n in range(4)]
    steps = []
    while any(streams):
        steps.append(random.choice([steps_ for steps_ in streams if steps_]).pop(0))
    mixed = replace(session_case, steps=tuple(steps))
    results, rejected, _ = run_session(mixed, open_session(mixed))
    outcome = expected(session_case)
    assert_same_results(total(results).elements(), total(outcome.results))
    assert rejected == [[row for row, _ in rows] for rows in outcome.rejected]


@given(sessions(most=3).map(without_promises))
def test_a_batch_is_a_record_batch_or_a_table(session_case: SessionCase):
    case = session_case.case
    session, got = open_session(session_case), Counter()
    for step in session_case.steps:
        stream = case.streams[step.stream]
        for batch in stream.table(step.start, step.stop).to_batches():
            got += Counter(table_rows(case.names, session.push(stream.name, batch)))
    assert_same_results(got.elements(), total(expected(session_case).results))


@st.composite
def long_sessions(draw) -> SessionCase:
    """Two or three streams in time order over many windows, one often far ahead of the others."""
    count = draw(st.integers(2, 3))
    windows = [draw(st.integers(0, 6)) for _ in range(count)]
    gaps = st.sampled_from([0, 0, 0, 1, 1, 2, 5, 30])
    columns = []
    for _ in range(count):
        times, now = [], 0
        for gap in draw(st.lists(gaps, min_size=6, max_size=24 if count == 2 else 12)):
            now += gap
            times.append(now)
        keys = draw(st.lists(st.integers(0, 1), min_size=len(times), max_size=len(times)))
        columns.append({TIME: (INT, times), "k": (INT, keys)})
    on = [Apply("==", (Column(0, "k"), Column(other, "k"))) for other in range(1, count)]
    case = tiny(on, *columns, windows=windows)
    steps, left = [], [len(stream.stored) for stream in case.streams]
    while any(left):
        stream = draw(st.sampled_from([n for n in range(count) if left[n]]))
        size = min(left[stream], draw(st.sampled_from([1, 2, 24])))
        start = len(case.streams[stream].stored) - left[stream]
        steps.append(Step(stream, start, start + size))
        left[stream] -= size
    return SessionCase(case, 0, "0", tuple(steps))


@given(long_sessions())
def test_expiry_loses_no_result_of_batches_of_uneven_span(session_case: SessionCase):
    outcome = expected(session_case)
    results, rejected, _ = run_session(session_case, open_session(session_case))
    for number, (got, owed) in enumerate(zip(results, outcome.results, strict=True)):
        assert_same_results(got.elements(), owed, f"step {number}")
    assert not any(rejected)


def steady(rows: int, *, window: int = 10) -> Case:
    columns = {TIME: (INT, list(range(rows))), "k": (INT, [row % 3 for row in range(rows)])}
    return tiny([SAME_KEY], columns, columns, windows=[window, window])


def push(session, case: Case, stream: int, start: int, stop: int) -> list[tuple[int, ...]]:
    name = case.names[stream]
    return table_rows(case.names, session.push(name, case.streams[stream].table(start, stop)))


def test_expiry_waits_for_the_slowest_stream():
    case = steady(1000)
    session = build(case).open(schemas=schemas(case))
    push(session, case, 0, 0, 1000)
    assert metric(session, "expired") == 0  # stream 1 may still bring a partner of every row
    got = push(session, case, 1, 0, 1000)
    assert_same_results(got, join(case.query, case.rows()))
    session.advance("s0", 2000)
    session.advance("s1", 2000)
    push(session, case, 0, 0, 0)
    assert metric(session, "expired") == 2000


def test_advance_lets_rows_go_that_can_meet_nothing():
    case = steady(100)
    session = build(case).open(schemas=schemas(case))
    push(session, case, 0, 0, 100)
    session.advance("s1", 60)  # rows of s0 before 50 are more than a window older than what comes
    assert metric(session, "expired", "s0") == 50
    got = push(session, case, 1, 60, 100)
    owed = {rows: 1 for rows in join(case.query, case.rows()) if rows[1] >= 60}
    assert_same_results(got, Counter(owed))


def test_advance_makes_earlier_rows_late():
    case = steady(20)
    session = build(case).open(schemas=schemas(case), on_late="keep")
    session.advance("s0", 7)
    push(session, case, 0, 5, 10)
    assert rejected_rows(session, "s0") == [5, 6]
    assert rejected_rows(session, "s1") == []


def test_disorder_within_lateness_is_no_reason_to_reject():
    case = steady(10)
    for lateness, late in ((3, []), (2, [6])):
        session = build(case).open(schemas=schemas(case), lateness=lateness, on_late="keep")
        push(session, case, 0, 9, 10)
        push(session, case, 0, 6, 7)
        push(session, case, 0, 7, 8)
        assert rejected_rows(session, "s0") == late


def test_a_late_row_is_late_within_its_own_batch():
    columns = {TIME: (INT, [5, 9, 6, 9, None, 10]), "k": (INT, [1] * 6)}
    case = tiny([SAME_KEY], columns, columns, windows=[10, 10])
    session = build(case).open(schemas=schemas(case), on_late="keep")
    push(session, case, 1, 0, 1)
    assert_same_results(
        push(session, case, 0, 0, 6), Counter({(row, 0): 1 for row in (0, 1, 3, 5)})
    )
    assert rejected_rows(session, "s0") == [2, 4]


ENDS = [-(2**63) + 1, -(2**63) + 2, 0, 2**63 - 2, 2**63 - 1]  # the least one is refused


@pytest.mark.parametrize("lateness", [0, 1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("windows", [[0, 0], [1, 2**63 - 1], [2**63 - 1, 2**63 - 1]])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 4, 0, 3, 1)])
def test_sessions_do_not_wrap_at_the_ends_of_int64(order, windows, lateness):
    times = [ENDS[place] for place in order]
    columns = {TIME: (INT, times), "k": (INT, [0] * 5)}
    case = tiny([SAME_KEY], columns, columns, windows=windows)
    steps = tuple(Step(stream, row, row + 1) for row in range(5) for stream in (0, 1))
    session_case = SessionCase(case, lateness, str(lateness), steps)
    outcome = expected(session_case)
    results, rejected, _ = run_session(session_case, open_session(session_case))
    for number, (got, owed) in enumerate(zip(results, outcome.results, strict=True)):
        assert_same_results(got.elements(), owed, f"step {number}")
    assert rejected == [[row for row, _ in rows] for rows in outcome.rejected]


def test_a_filtered_row_is_not_rejected_and_moves_the_watermark():
    case = steady(10)
    condition = Apply("<", (Column(0, TIME), Literal(5)))
    filtered = replace(case, query=replace(case.query, filters=(condition, None)))
    session = build(filtered).open(schemas=schemas(case), on_late="keep")
    push(session, filtered, 0, 9, 10)
    push(session, filtered, 0, 3, 4)
    assert rejected_rows(session, "s0") == [3]


def test_metrics_count_rows_results_and_rejected():
    columns = {TIME: (INT, [5, 9, 6, None]), "k": (INT, [1] * 4)}
    case = tiny([SAME_KEY], columns, columns, windows=[10, 10])
    session = build(case).open(schemas=schemas(case), on_late="keep")
    push(session, case, 0, 0, 4)
    push(session, case, 1, 0, 2)
    counted = {
        name: [metric(session, name), metric(session, name, "s0"), metric(session, name, "s1")]
        for name in ("rows_in", "rejected", "expired")
    }
    assert counted == {"rows_in": [6, 4, 2], "rejected": [2, 2, 0], "expired": [0, 0, 0]}
    assert metric(session, "results") == 4
    assert metric(session, "comparisons") >= 4
    per_stream = [metric(session, "state_bytes", name) for name in case.names]
    assert all(per_stream)
    assert metric(session, "state_bytes") >= sum(per_stream)


@pytest.mark.parametrize("size", [16, 64])
def test_state_stays_flat_over_a_long_run(size: int):
    cycle, rounds = steady(64), 120
    session = build(cycle).open(schemas=schemas(cycle))
    tables = [stream.table() for stream in cycle.streams]
    peaks = []
    for round_ in range(rounds):
        peak = 0
        for start in range(0, 64, size):
            first = 64 * round_ + start
            for name, table in zip(cycle.names, tables, strict=True):
                times = pa.array(range(first, first + size))
                session.push(name, table.slice(start, size).set_column(0, TIME, times))
                peak = max(peak, metric(session, "state_bytes"))
        peaks.append(peak)
    # rows are forgotten in lots, so bytes go up and down; what counts is that peaks do not grow
    assert max(peaks[rounds // 2 :]) <= max(peaks[: rounds // 2]), peaks
    assert metric(session, "expired") >= 2 * 64 * (rounds - 2)
