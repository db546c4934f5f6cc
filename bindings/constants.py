"""Constants written in a query: their kind, and their value as the evaluator holds it."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from windjoin.durations import is_duration, parse_duration
from windjoin.errors import QueryError
from windjoin.kinds import BINARY, BOOL, FLOAT, TEXT, UNIT_STEPS, Kind

_SECOND_STEPS = [UNIT_STEPS[unit] for unit in ("s", "ms", "us", "ns")]
_NUMPY_UNITS = {"W": "w", "D": "d"} | {unit: unit for unit in ("h", "m", "s", "ms", "us", "ns")}
_EPOCH = date(1970, 1, 1).toordinal()


def constant_value(value: Any) -> tuple[Kind, Any]:
    """The kind of a constant, and its mantissa, double, boolean, text or bytes.

    >>> constant_value("5s")[0].family, constant_value(5)[1]
    ('text', 5)
    """
    if is_duration(value):
        return duration_value(value)
    if hasattr(value, "to_datetime64"):  # pandas: a datetime that knows nanoseconds
        zone = None if value.tzinfo is None else "UTC"
        value = (value if zone is None else value.tz_convert(None)).to_datetime64()
        return _numpy_instant(value, zone)
    if isinstance(value, np.datetime64):
        return _numpy_instant(value, None)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return BOOL, value
    if isinstance(value, int):
        return Kind("integer", low=value, high=value), value
    if isinstance(value, float):
        return FLOAT, value
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return TEXT, value
    if isinstance(value, bytes):
        return BINARY, value
    if isinstance(value, datetime):
        return _datetime(value)
    if isinstance(value, date):
        days = value.toordinal() - _EPOCH
        return Kind("date", UNIT_STEPS["d"]), days
    if isinstance(value, time) and value.tzinfo is None:
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return _coarsest("time", seconds * 10**9 + value.microsecond * 1000)
    raise QueryError(
        f"constant {value!r} ({type(value).__name__}) cannot be compared; use numbers, text, bytes,"
        " Decimal, date, datetime, timedelta or a time without zone"
    )


def duration_value(value: object) -> tuple[Kind, int]:
    """A duration (or text that says one), counted in the coarsest unit that holds it exactly."""
    return _coarsest("duration", parse_duration(value).nanoseconds)


def _coarsest(family: Any, nanoseconds: int, zone: str | None = None) -> tuple[Kind, int]:
    for step in _SECOND_STEPS:
        size = int(step * 10**9)
        if nanoseconds % size == 0:
            break
    return Kind(family, step, zone=zone), nanoseconds // size


def _datetime(value: datetime) -> tuple[Kind, int]:
    zone = None if value.tzinfo is None else "UTC"
    offset = value.utcoffset()
    apart = value.replace(tzinfo=None) - datetime(1970, 1, 1)
    if offset is not None:
        apart -= offset
    return _coarsest("timestamp", parse_duration(apart).nanoseconds, zone)


def _numpy_instant(value: Any, zone: str | None) -> tuple[Kind, int]:
    unit, count = np.datetime_data(value.dtype)
    if unit not in _NUMPY_UNITS:
        raise QueryError(f"constant {value!r}: use a unit from weeks down to nanoseconds")
    nanoseconds = int(value.astype(np.int64)) * count * UNIT_STEPS[_NUMPY_UNITS[unit]] * 10**9
    return _coarsest("timestamp", int(nanoseconds), zone)


def _decimal(value: Decimal) -> tuple[Kind, Any]:
    if value.is_infinite():
        return FLOAT, float(value)
    exponent = min(int(value.as_tuple().exponent), 0)
    mantissa = int(value.scaleb(-exponent)) if exponent else int(value)
    step = Fraction(1, 10**-exponent)
    return Kind("decimal", step, mantissa, mantissa), mantissa
