"""How late rows may be, and promises that none will come: in ticks of the query's clock."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
from windjoin.durations import is_duration, parse_duration
from windjoin.errors import QueryError
from windjoin.times import Clock


def lateness_ticks(clock: Clock, lateness: Any, integers: bool) -> int:
    """``lateness`` as a whole number of ticks; an integer is one where all times are ``integers``.

    >>> lateness_ticks(Clock(Fraction(1, 1000)), "2s", False), lateness_ticks(Clock(None), 5, True)
    (2000, 5)
    """
    ticks: int
    plain = isinstance(lateness, int) and not isinstance(lateness, bool)
    if plain and (integers or lateness == 0):
        ticks = lateness
    elif clock.step is None:
        raise QueryError(
            f"lateness={lateness!r}: the streams have integer times without a unit; give an integer"
        )
    elif plain or not (isinstance(lateness, str) or is_duration(lateness)):
        raise QueryError(
            f"lateness={lateness!r}: times are timestamps; give a duration, for example"
            f' lateness="{lateness}s"'
            if plain
            else f'lateness={lateness!r}: give a duration such as "2s"'
        )
    else:
        ticks = int(Fraction(parse_duration(lateness).nanoseconds, 10**9) // clock.step)
    if ticks < 0:
        raise QueryError(f"lateness={lateness!r} is negative; give 0 or more")
    return ticks


def promise_ticks(stream: str, arrow_type: pa.DataType, ratio: int, time: Any) -> int:
    """The time of a promise: an integer in the unit of the time column, or a datetime.

    >>> promise_ticks("a", pa.timestamp("ms"), 1000, 7)
    7000
    """
    if isinstance(time, bool) or not isinstance(time, int):
        if not pa.types.is_timestamp(arrow_type):
            raise QueryError(
                f"advance({stream!r}, {time!r}): times of this stream are {arrow_type};"
                " give an integer"
            )
        try:
            time = pa.scalar(time, arrow_type).value
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise QueryError(
                f"advance({stream!r}, {time!r}): times of this stream are {arrow_type};"
                " give a datetime or an integer in that unit"
            ) from error
    ticks = int(time) * ratio
    return max(min(ticks, 2**63 - 1), -(2**63))
