"""How late rows may be, and promises that none will come: in ticks of the query's clock."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.durations import Duration, is_duration, parse_duration
from windjoin.errors import QueryError
from windjoin.times import TimeColumn, TimeUnit


def length_ticks(option: str, clock: TimeUnit, length: Any, integers: bool) -> int:
    """An option that is a length of time as a whole number of ticks.

    ``integers``: all times are integers, and so may the length be.

    >>> length_ticks("lateness", TimeUnit(Fraction(1, 1000)), "2s", False)
    2000
    >>> length_ticks("segment", TimeUnit(None), 5, True)
    5
    """
    ticks: int
    plain = isinstance(length, int) and not isinstance(length, bool)
    if plain and (integers or length == 0):
        ticks = length
    elif clock.step is None:
        raise QueryError(
            f"{option}={length!r}: the streams have integer times without a unit; give an integer"
        )
    elif plain or not (isinstance(length, str) or is_duration(length)):
        raise QueryError(
            f"{option}={length!r}: times are timestamps; give a duration, for example"
            f' {option}="{length}s"'
            if plain
            else f'{option}={length!r}: give a duration such as "2s"'
        )
    else:
        ticks = int(Fraction(parse_duration(length, option).nanoseconds, 10**9) // clock.step)
    if ticks < 0:
        raise QueryError(f"{option}={length!r} is negative; give 0 or more")
    return ticks


def length_text(ticks: int, clock: TimeUnit, like: Any) -> str:
    """A number of ticks as an option that is now ``like`` would be written.

    >>> length_text(2000, TimeUnit(Fraction(1, 1000)), "1s"), length_text(7, TimeUnit(None), 0)
    ('"2s"', '7')
    """
    if clock.step is None or (like and isinstance(like, int)):
        return str(ticks)
    return f'"{Duration(int(ticks * clock.step * 10**9))}"'


def time_text(column: TimeColumn, ticks: int) -> str:
    """A time in ticks as it would stand in a stream's time column.

    >>> time_text(TimeColumn("a", "t", pa.timestamp("s"), 1000, "ms"), 1_767_600_000_500)
    '2026-01-05 08:00:00.5'
    """
    if not pa.types.is_timestamp(column.type):
        return str(Fraction(ticks, column.ratio))
    unit: Any = column.unit or "s"
    text = str(np.datetime64(ticks, unit)).replace("T", " ")
    exact = text.rstrip("0").rstrip(".") if "." in text else text
    return exact + ("Z" if column.type.tz else "")


def promise_ticks(column: TimeColumn, time: Any) -> int:
    """The time of a promise: an integer in the unit of the time column, or a datetime.

    >>> promise_ticks(TimeColumn("a", "t", pa.timestamp("ms"), 1000, "us"), 7)
    7000
    """
    if isinstance(time, bool) or not isinstance(time, int):
        if not pa.types.is_timestamp(column.type):
            raise QueryError(
                f"advance({column.stream!r}, {time!r}): times of this stream are {column.type};"
                " give an integer"
            )
        try:
            time = pa.scalar(time, column.type).value
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise QueryError(
                f"advance({column.stream!r}, {time!r}): times of this stream are {column.type};"
                " give a datetime or an integer in that unit"
            ) from error
    ticks = int(time) * column.ratio
    return max(min(ticks, 2**63 - 1), -(2**63))
