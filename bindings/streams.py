"""A stream: a name, the column that holds its time, and how long its rows stay joinable."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
from windjoin.conjunctions import conjuncts
from windjoin.durations import NANOSECONDS, SPELLINGS, Duration, is_duration, parse_duration
from windjoin.errors import QueryError
from windjoin.expressions import Column, Expression
from windjoin.row_windows import RowWindow

Window = str | int | timedelta | np.timedelta64 | Duration | RowWindow
Filter = Expression | Callable[["Stream"], Expression]


@dataclass(frozen=True, eq=False, repr=False)
class Stream:
    """One input of a join; made by `stream`.  ``calls["person"]`` is its column ``person``.

    >>> calls = stream("calls", time="ts", window="60s")
    >>> calls["person"], calls.name, calls.time, str(calls.window)
    (calls["person"], 'calls', 'ts', '1m')
    """

    name: str
    time: str
    window: Duration | int | RowWindow  # an integer counts in units of the time column
    unit: str | None = None
    where: Expression | None = None
    idle: Duration | None = None

    def __getitem__(self, column: str) -> Column:
        if not isinstance(column, str):
            raise QueryError(
                f'{self.name}[{column!r}]: a column is named by text, as in {self.name}["person"]'
            )
        return Column(self.name, column)

    def __repr__(self) -> str:
        window = str(self.window) if isinstance(self.window, Duration) else self.window
        unit = "" if self.unit is None else f", unit={self.unit!r}"
        where = "" if self.where is None else f", where={self.where!r}"
        idle = "" if self.idle is None else f", idle={str(self.idle)!r}"
        return f"stream({self.name!r}, time={self.time!r}, window={window!r}{unit}{where}{idle})"

    def with_window(self, window: Window) -> Stream:
        """The same stream with a window of another length.

        >>> stream("calls", time="ts", window="60s").with_window("30s")
        stream('calls', time='ts', window='30s')
        """
        return replace(self, window=_window(self.name, window, self.unit))

    @property
    def conditions(self) -> list[Expression]:
        """The conditions of ``where``, one by one.

        >>> stream("a", time="t", window=5, where=lambda a: (a["x"] > 1) & (a["y"] < 2)).conditions
        [a["x"] > 1, a["y"] < 2]
        """
        return [] if self.where is None else conjuncts(self.where)


def stream(
    name: str,
    *,
    time: str,
    window: Window,
    unit: str | None = None,
    where: Filter | None = None,
    idle: str | timedelta | np.timedelta64 | Duration | None = None,
) -> Stream:
    """Describe one input of a join.

    ``time`` names a timestamp column, or an integer column; ``unit`` says what such an integer
    counts ("s", "ms", "us", "ns", "m", "h", "d").  ``window`` is how much older than the newest
    member of a combination a row of this stream may be: "10s", "1h30m", a timedelta, or an integer
    in units of the time column; or `rows`, so many last rows.  ``where`` keeps only some rows: an
    expression over this stream's columns, or a function of the stream that returns one.  ``idle``
    is for sessions: a stream that has sent nothing for that long on the clock does not hold others
    back (see `Query.open`).

    >>> stream("calls", time="ts", window="90s", where=lambda calls: calls["price"] > 0)
    stream('calls', time='ts', window='1m30s', where=calls["price"] > 0)
    """
    if not isinstance(name, str) or not name:
        raise QueryError(f"stream({name!r}): the name must be a text that is not empty")
    if not isinstance(time, str) or not time:
        raise QueryError(f"stream {name!r}: time={time!r} must be the name of the time column")
    unit = _unit(name, unit)
    bare = Stream(name, time, _window(name, window, unit), unit)
    silence = idle_length(f"stream {name!r}: ", idle)
    return Stream(name, time, bare.window, unit, _filter(bare, where), silence)


def idle_length(place: str, idle: Any) -> Duration | None:
    """How long a stream may be silent, None: for ever; ``place`` is for messages."""
    if idle is None:
        return None
    if not isinstance(idle, str) and not is_duration(idle):
        raise QueryError(f'{place}idle={idle!r}: give a duration on the clock, such as idle="30s"')
    length = parse_duration(idle, f"{place}idle")
    if length.nanoseconds <= 0:
        raise QueryError(f"{place}idle={idle!r} is no time at all; leave it out, or give more")
    return length


def _unit(name: str, unit: str | None) -> str | None:
    if unit is None:
        return None
    known = SPELLINGS.get(unit, unit) if isinstance(unit, str) else None
    if known not in NANOSECONDS:
        raise QueryError(f"stream {name!r}: unit={unit!r} is not one of {', '.join(NANOSECONDS)}")
    return known


def _window(name: str, window: Any, unit: str | None) -> Duration | int | RowWindow:
    length: Duration | int
    if isinstance(window, RowWindow):
        return window
    if isinstance(window, numbers.Integral) and not isinstance(window, (bool, np.timedelta64)):
        length = int(window) if unit is None else Duration(int(window) * NANOSECONDS[unit])
        negative = window < 0
    else:
        length = parse_duration(window, f"stream {name!r}: window")
        negative = length.nanoseconds < 0
    if negative:
        raise QueryError(
            f"stream {name!r}: window={window!r} is negative;"
            " a window is how far back a row is kept, 0 or more"
        )
    return length


def _filter(bare: Stream, where: Any) -> Expression | None:
    if where is None:
        return None
    condition = where(bare) if callable(where) else where
    if not isinstance(condition, Expression):
        raise QueryError(
            f"stream {bare.name!r}: where={condition!r} is not a condition on its columns; write"
            f' for example where=lambda {bare.name}: {bare.name}["price"] > 0'
        )
    others = [name for name in condition.streams if name != bare.name]
    if others or not condition.streams:
        raise QueryError(
            f"stream {bare.name!r}: where=`{condition!r}` must use columns of this stream only"
            + (f", not of {others[0]!r}; such a condition belongs in on=" if others else "")
        )
    return condition
