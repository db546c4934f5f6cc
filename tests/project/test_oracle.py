"""The oracle against hand-made cases and against its own plainer form; the comparison helper."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import inf, nan

import pytest
from hypothesis import given

from tests.cases import Case, SessionCase
from tests.compare import assert_same_results
from tests.oracle import (
    TIME,
    Advance,
    Apply,
    Column,
    Literal,
    Outcome,
    Push,
    Query,
    Results,
    Row,
    evaluate,
    join,
    join_by_definition,
    ordered,
    replay,
)
from tests.strategies import cases, sessions

X, Y = Column(0, "x"), Column(1, "x")
TRUE, FALSE, UNKNOWN = (Apply("==", (Literal(1), Literal(other))) for other in (1, 2, None))


def rows(*times: int | None) -> list[Row]:
    return [{TIME: time, "x": 0} for time in times]


def cross(*windows: int, closed: str = "both") -> Query:
    return Query(windows, (), (None,) * len(windows), closed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("closed", "expected"),
    [("both", {(0, 0), (1, 0), (0, 1), (1, 1)}), ("right", {(0, 0), (1, 0), (0, 1)})],
)
def test_join_keeps_or_drops_the_row_on_the_border(closed, expected):
    # stream 1 keeps 10 units: its row 1 is exactly that much older than row 1 of stream 0
    assert set(join(cross(5, 10, closed=closed), [rows(0, 5), rows(0, -5)])) == expected


def test_join_uses_the_window_of_the_older_row():
    streams = [rows(0), rows(7)]
    assert join(cross(7, 0), streams) == {(0, 0): 1}
    assert join(cross(6, 100), streams) == {}


def test_join_measures_age_from_the_newest_member_not_between_neighbours():
    streams = [rows(0), rows(4), rows(8)]
    assert join(cross(8, 4, 0), streams) == {(0, 0, 0): 1}
    assert join(cross(7, 4, 0), streams) == {}
    assert join(cross(8, 3, 0), streams) == {}


def test_join_of_equal_times_survives_a_window_of_zero():
    assert join(cross(0, 0, closed="right"), [rows(3, 3), rows(3)]) == {(0, 0): 1, (1, 0): 1}


def test_join_never_uses_a_row_without_time():
    assert join(cross(9, 9), [rows(None, 1), rows(1)]) == {(1, 0): 1}


def test_join_of_an_empty_stream_is_empty():
    assert join(cross(9, 9), [rows(1, 2), rows()]) == {}


def test_join_excludes_a_row_from_meeting_itself():
    streams = [rows(1, 1), rows(1, 1)]
    query = replace(cross(0, 0), distinct=((0, 1),))
    assert join(query, streams) == {(0, 1): 1, (1, 0): 1}


@pytest.mark.parametrize(
    ("left", "right", "equal", "less"),
    [
        (2**53 + 1, float(2**53), False, False),
        (2**53, float(2**53), True, False),
        (2**63 - 1, float(2**63), False, True),
        (2**64 - 1, -1, False, False),
        (Fraction(1, 10), 0.1, False, True),  # the double nearest to 0.1 lies above it
        (Fraction(2**53 + 1), 2**53, False, False),
        (0.0, -0.0, True, False),
        (-inf, inf, False, True),
        ("a", "aa", False, True),
        (b"a", b"a\x00", False, True),
        (nan, nan, None, None),
        (None, None, None, None),
        (1, None, None, None),
    ],
)
def test_evaluate_compares_exactly(left, right, equal, less):
    combination = [{"x": left}, {"x": right}]
    assert evaluate(Apply("==", (X, Y)), combination) is equal
    assert evaluate(Apply("<", (X, Y)), combination) is less
    assert evaluate(Apply("!=", (X, Y)), combination) is (None if equal is None else not equal)


@pytest.mark.parametrize(
    ("operation", "operands", "value"),
    [
        ("&", (TRUE, TRUE), True),
        ("&", (TRUE, FALSE), False),
        ("&", (TRUE, UNKNOWN), None),
        ("&", (FALSE, UNKNOWN), False),
        ("|", (FALSE, FALSE), False),
        ("|", (FALSE, UNKNOWN), None),
        ("|", (UNKNOWN, TRUE), True),
        ("~", (TRUE,), False),
        ("~", (FALSE,), True),
        ("~", (UNKNOWN,), None),
        ("is_null", (Literal(nan),), True),
        ("is_null", (Literal(0),), False),
    ],
)
def test_evaluate_follows_three_valued_logic(operation, operands, value):
    assert evaluate(Apply(operation, operands), []) is value


def test_evaluate_makes_a_difference_of_infinities_unknown():
    band = Apply("<=", (Apply("abs", (Apply("-", (X, Y)),)), Literal(inf)))
    assert evaluate(band, [{"x": inf}, {"x": inf}]) is None
    assert evaluate(band, [{"x": inf}, {"x": 1.0}]) is True


@pytest.mark.parametrize(
    ("closed", "inside"),
    [("both", [1, 2, 3]), ("left", [1, 2]), ("right", [2, 3]), ("neither", [2])],
)
def test_evaluate_between_knows_its_ends(closed, inside):
    between = Apply(closed, (X, Literal(1), Literal(3)))
    assert [x for x in range(5) if evaluate(between, [{"x": x}])] == inside


@pytest.mark.parametrize(
    ("operation", "left", "right", "value"),
    [
        ("/", 1, 2, 0.5),
        ("/", -1, 0, -inf),
        ("/", 1.0, -0.0, -inf),
        ("/", 0, 0, None),
        ("//", -3, 2, -2),
        ("%", -3, 2, 1),
        ("//", 1, 0, None),
        ("%", 1, 0, None),
    ],
)
def test_evaluate_divides_as_ieee_or_rounds_down(operation, left, right, value):
    assert evaluate(Apply(operation, (X, Y)), [{"x": left}, {"x": right}]) == value


def test_evaluate_does_not_wrap_integers():
    assert evaluate(Apply("+", (X, Y)), [{"x": 2**63 - 1}, {"x": 2**63 - 1}]) == 2**64 - 2


def test_ordered_goes_by_the_newest_time_then_by_members_in_time():
    streams = [rows(5, 0, 5), rows(1, 0)]
    assert ordered(join(cross(9, 9), streams), streams) == [
        (1, 1), (1, 0), (0, 1), (0, 0), (2, 1), (2, 0),
    ]  # fmt: skip


@given(cases(most=3))
def test_join_equals_the_definition(case: Case):
    streams = case.rows()
    assert_same_results(join(case.query, streams), join_by_definition(case.query, streams))


def test_replay_gives_a_result_with_the_last_member_to_arrive():
    events = [Push(0, tuple(rows(5))), Push(1, tuple(rows(5))), Push(0, tuple(rows(4)))]
    outcome = replay(cross(9, 9), events, lateness=1)
    assert outcome.results == [Counter(), {(0, 0): 1}, {(1, 0): 1}]


def test_replay_rejects_by_the_watermark_of_the_rows_before():
    events = [Push(0, tuple(rows(10, 8, 7, None, 12, 9)))]
    outcome = replay(cross(0, 0), events, lateness=2)
    assert outcome.rejected == [[(2, "late"), (3, "null time"), (5, "late")], []]
    assert outcome.accepted == [[0, 1, 4], []]


def test_replay_takes_a_promise_as_the_watermark_and_never_moves_it_back():
    events = [Advance(0, 5), Advance(0, 3), Push(0, tuple(rows(4, 5))), Push(1, tuple(rows(4)))]
    outcome = replay(cross(9, 9), events, lateness=100)
    assert outcome.rejected == [[(0, "late")], []]
    assert outcome.results == [Counter(), Counter(), Counter(), {(1, 0): 1}]


@given(sessions())
def test_replay_of_all_steps_is_the_join_of_the_accepted_rows(session: SessionCase):
    outcome = replay(session.case.query, session.events(), session.lateness)
    streams = session.case.rows()
    for stream, accepted in zip(streams, outcome.accepted, strict=True):
        for number in set(range(len(stream))) - set(accepted):
            stream[number][TIME] = None
    everything = sum(outcome.results, Counter())
    assert_same_results(everything, join(session.case.query, streams))


@given(sessions(most=3))
def test_replay_equals_row_by_row_arrival(session: SessionCase):
    outcome = replay(session.case.query, session.events(), session.lateness)
    again = one_row_at_a_time(session)
    assert (outcome.results, outcome.rejected, outcome.accepted) == (
        again.results, again.rejected, again.accepted
    )  # fmt: skip


def one_row_at_a_time(session: SessionCase) -> Outcome:
    """The session again, by joining every row as it arrives with what arrived before it."""
    query, count = session.case.query, len(session.case.streams)
    stored: list[list[Row]] = [[] for _ in range(count)]
    watermark = [-inf] * count
    outcome = Outcome([], [[] for _ in range(count)], [[] for _ in range(count)])
    for event in session.events():
        results: Results = Counter()
        if isinstance(event, Advance):
            watermark[event.stream] = max(watermark[event.stream], event.time)
        for row in event.rows if isinstance(event, Push) else ():
            number, time = len(stored[event.stream]), row[TIME]
            bad = time is None or time < watermark[event.stream]
            stored[event.stream].append({TIME: None} if bad else row)
            if bad:
                reason = "null time" if time is None else "late"
                outcome.rejected[event.stream].append((number, reason))  # type: ignore[arg-type]
                continue
            outcome.accepted[event.stream].append(number)
            watermark[event.stream] = max(watermark[event.stream], time - session.lateness)
            found = join(query, [*stored[: event.stream], [row], *stored[event.stream + 1 :]])
            for numbers, times in found.items():
                renumbered = [*numbers[: event.stream], number, *numbers[event.stream + 1 :]]
                results[tuple(renumbered)] += times
        outcome.results.append(results)
    return outcome


EXPECTED = Counter({(0, 1): 1, (2, 3): 2})


def test_comparison_accepts_the_same_multiset_in_any_order():
    assert_same_results([(2, 3), (0, 1), (2, 3)], EXPECTED)


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([(0, 1), (2, 3)], r"2 rows, expected 3; 1 missing: \(2, 3\) x1"),
        ([(0, 1), (0, 1), (2, 3), (2, 3)], r"4 rows, .* 1 unexpected or doubled: \(0, 1\) x1"),
        ([(0, 1), (2, 3), (2, 4)], r"1 missing: \(2, 3\) x1; 1 unexpected .*: \(2, 4\) x1"),
        ([], r"0 rows, expected 3; 2 missing"),
    ],
)
def test_comparison_names_missing_and_doubled_rows(got, message):
    with pytest.raises(AssertionError, match=message):
        assert_same_results(got, EXPECTED)
