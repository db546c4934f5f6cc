"""Durations: what is read, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windjoin.durations import NANOSECONDS, Duration, is_duration, parse_duration
from windjoin.errors import QueryError

SECOND = 10**9


@pytest.mark.parametrize(
    ("given", "nanoseconds"),
    [
        ("10s", 10 * SECOND),
        ("1h30m", 5_400 * SECOND),
        (" 1 h 30 min ", 5_400 * SECOND),
        ("250ms", SECOND // 4),
        ("0.5us", 500),
        ("3µs", 3_000),
        ("3μs", 3_000),
        ("2w1d", 15 * 86_400 * SECOND),
        ("-5s", -5 * SECOND),
        ("0s", 0),
        (timedelta(days=-1, microseconds=1), -86_400 * SECOND + 1000),
        (np.timedelta64(3, "h"), 3 * 3600 * SECOND),
        (np.timedelta64(2, "W"), 14 * 86_400 * SECOND),
        (np.timedelta64(3000, "ps"), 3),
        (np.timedelta64(7, "5s"), 35 * SECOND),
        (pd.Timedelta(1, "ns"), 1),
        (Duration(7), 7),
    ],
)
def test_durations_are_read_exactly(given: Any, nanoseconds: int) -> None:
    assert parse_duration(given) == Duration(nanoseconds)


@given(st.integers(-(10**24), 10**24))
def test_text_of_a_duration_reads_back(nanoseconds: int) -> None:
    assert parse_duration(str(Duration(nanoseconds))).nanoseconds == nanoseconds


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(sorted(NANOSECONDS))), min_size=1))
def test_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{count}{unit}" for count, unit in parts)
    assert parse_duration(text).nanoseconds == sum(n * NANOSECONDS[unit] for n, unit in parts)


@given(st.timedeltas())
def test_timedeltas_are_read_exactly(value: timedelta) -> None:
    assert parse_duration(value).nanoseconds == value // timedelta(microseconds=1) * 1000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "'' is not a duration; write numbers with units"),
        ("10", "'10' is not a duration; write numbers with units"),
        ("-", "'-' is not a duration"),
        ("s", "'s' is not a duration"),
        ("1h and 2m", "unknown unit 'and'|is not a duration"),
        ("5 apples", "has the unknown unit 'apples'; units are w, d, h, m, s, ms, us, ns"),
        ("0.5ns", "duration 0.5ns is not a whole number of nanoseconds"),
        (np.timedelta64(1, "ps"), "is not a whole number of nanoseconds"),
        (np.timedelta64(1, "M"), "has no fixed length of time; use a unit from weeks"),
        (np.timedelta64(1, "Y"), "has no fixed length of time"),
        (np.timedelta64("NaT", "ns"), "NaT is not a duration"),
        (5, r"5 \(int\) is not a duration; write a text"),
        (None, r"None \(NoneType\) is not a duration"),
    ],
)
def test_what_is_not_a_duration_is_refused(given: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_duration(given)


def test_only_objects_count_as_durations_by_themselves() -> None:
    assert is_duration(timedelta(1))
    assert is_duration(np.timedelta64(1, "s"))
    assert not is_duration("5s")
    assert not is_duration(5)
