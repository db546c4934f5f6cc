"""Lengths of time: ``"10s"``, ``"1h30m"``, ``timedelta``, ``np.timedelta64``, in nanoseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np
from windjoin.errors import QueryError

NANOSECONDS = {
    "w": 7 * 86_400 * 10**9,
    "d": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
SPELLINGS = {"min": "m", "µs": "us", "μs": "us", "W": "w", "D": "d", "H": "h"}
for _unit, _words in {
    "w": "week",
    "d": "day",
    "h": "hour hr",
    "m": "minute min",
    "s": "second sec",
    "ms": "millisecond millis milli",
    "us": "microsecond micros micro",
    "ns": "nanosecond nanos nano",
}.items():
    SPELLINGS |= {spelled + end: _unit for spelled in _words.split() for end in ("", "s")}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Zµμ]+)\s*")
# NumPy's units that are a fixed length of time, in nanoseconds
_NUMPY_UNITS = {
    **{unit: Fraction(NANOSECONDS[unit]) for unit in ("h", "m", "s", "ms", "us", "ns")},
    "W": Fraction(NANOSECONDS["w"]),
    "D": Fraction(NANOSECONDS["d"]),
    "ps": Fraction(1, 10**3),
    "fs": Fraction(1, 10**6),
    "as": Fraction(1, 10**9),
}


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in whole nanoseconds; its text is the shortest that parses back.

    >>> str(Duration(5_400 * 10**9)), str(Duration(-250_000_000))
    ('1h30m', '-250ms')
    """

    nanoseconds: int

    def __str__(self) -> str:
        rest = abs(self.nanoseconds)
        parts = []
        for unit, size in list(NANOSECONDS.items())[1:]:
            count, rest = divmod(rest, size)
            if count:
                parts.append(f"{count}{unit}")
        return ("-" if self.nanoseconds < 0 else "") + ("".join(parts) or "0s")


def is_duration(value: object) -> bool:
    """Whether ``value`` is an object that stands for a length of time (text is not looked at)."""
    return isinstance(value, (Duration, timedelta, np.timedelta64))


def parse_duration(value: object, of: str = "") -> Duration:
    """The duration that a text, a ``timedelta`` or an ``np.timedelta64`` stands for.

    ``of``: what it is given for, to begin a message with.

    >>> parse_duration("1h30m").nanoseconds // 10**9
    5400
    >>> str(parse_duration("5 minutes 30 seconds"))
    '5m30s'
    >>> parse_duration("1.5ms") == parse_duration(np.timedelta64(1500, "us"))
    True
    """
    if of:
        try:
            return parse_duration(value)
        except QueryError as error:
            raise QueryError(f"{of}: {error}") from None
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        return _parse_text(value)
    if hasattr(value, "to_timedelta64"):  # pandas: a timedelta that knows nanoseconds
        value = value.to_timedelta64()
    if isinstance(value, np.timedelta64):
        return _from_numpy(value)
    if isinstance(value, timedelta):
        return Duration((value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000)
    raise QueryError(
        f"{value!r} ({type(value).__name__}) is not a duration;"
        ' write a text such as "10s" or "1h30m", a timedelta or an np.timedelta64'
    )


def _parse_text(text: str) -> Duration:
    body = text.strip()
    negative = body.startswith("-")
    position = 1 if negative else 0
    total = Fraction(0)
    while match := _PART.match(body, position):
        number, spelled = match.groups()
        unit = SPELLINGS.get(spelled, spelled)
        if unit not in NANOSECONDS:
            rows = "; the last rows of a stream are window=wj.rows(...)" if "row" in unit else ""
            raise QueryError(
                f"duration {text!r} has the unknown unit {spelled!r};"
                f" units are {', '.join(NANOSECONDS)}{rows}"
            )
        total += Fraction(number) * NANOSECONDS[unit]
        position = match.end()
    if position != len(body) or position == int(negative):
        raise QueryError(
            f"{text!r} is not a duration; write numbers with units, such as"
            ' "10s", "1h30m" or "250ms"'
        )
    return _whole(-total if negative else total, text)


def _from_numpy(value: Any) -> Duration:
    if np.isnat(value):
        raise QueryError("NaT is not a duration; give a length of time")
    unit, count = np.datetime_data(value.dtype)
    if unit not in _NUMPY_UNITS:
        raise QueryError(
            f"{value!r} has no fixed length of time; use a unit from weeks down to nanoseconds"
        )
    return _whole(int(value.astype(np.int64)) * count * _NUMPY_UNITS[unit], repr(value))


def _whole(nanoseconds: Fraction, shown: str) -> Duration:
    if nanoseconds.denominator != 1:
        raise QueryError(f"duration {shown} is not a whole number of nanoseconds")
    return Duration(int(nanoseconds))


def check_length(option: str, length: Any) -> None:
    """Refuse what is no length of time whatever the times of the streams are.

    >>> check_length("lateness", "2s"), check_length("lateness", 5)
    (None, None)
    """
    if isinstance(length, int) and not isinstance(length, bool):
        if length < 0:
            raise QueryError(f"{option}={length!r} is negative; give 0 or more")
    elif not (isinstance(length, str) or is_duration(length)):
        raise QueryError(
            f'{option}={length!r}: give a duration such as "2s", or an integer where times are'
            " integers"
        )
    elif parse_duration(length, option).nanoseconds < 0:
        raise QueryError(f"{option}={length!r} is negative; give 0 or more")
