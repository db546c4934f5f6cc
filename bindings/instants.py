"""Texts that say a date or a time, as constants beside columns of times."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from windjoin.constants import constant_value
from windjoin.errors import QueryError
from windjoin.kinds import Kind


def instant_value(text: str, zone: str | None) -> tuple[Kind, Any]:
    """The kind and value of a date or time in the form of ISO 8601, for a column of ``zone``.

    Without an offset it is the local time of the column's zone.

    >>> instant_value("2024-01-01", None)[1] == instant_value("2024-01-01T00:00:00", None)[1]
    True
    >>> paris, utc = "2024-01-01 01:00", "2024-01-01 00:00+00:00"
    >>> instant_value(paris, "Europe/Paris")[1] == instant_value(utc, "Europe/Paris")[1]
    True
    """
    try:
        said = datetime.fromisoformat(text)
    except ValueError:
        said = None
    if said is None or _is_finer(text):
        return _numpy(text, zone)
    if zone is None and said.tzinfo is not None:
        raise QueryError(
            f"{text!r} has an offset, and the times it meets have no zone; leave the offset out"
        )
    if zone is not None and said.tzinfo is None:
        said = _local(text, said, zone)
    return constant_value(said)


def _is_finer(text: str) -> bool:
    """Whether a text has more places of a second than datetime keeps."""
    fraction = text.partition(".")[2]
    digits = len(fraction) - len(fraction.lstrip("0123456789"))
    return digits > 6


def _numpy(text: str, zone: str | None) -> tuple[Kind, Any]:
    """Nanoseconds, and years beyond those of datetime."""
    refusal = (
        f"{text!r} is not a time; write one such as"
        ' "2024-01-31", "2024-01-31 12:30:00" or "2024-01-31T12:30:00.5+01:00"'
    )
    if zone is not None:
        raise QueryError(refusal)
    try:
        value = np.datetime64(text)
    except ValueError:
        raise QueryError(refusal) from None
    unit, _ = np.datetime_data(value.dtype)
    if np.isnat(value) or unit in ("generic", "Y", "M"):
        raise QueryError(refusal)
    return constant_value(value)


def _local(text: str, said: datetime, zone: str) -> datetime:
    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise QueryError(
            f"{text!r} has no offset, and the zone {zone!r} is not known here;"
            ' write the offset, such as "2024-01-31 12:30+01:00"'
        ) from None
    first, second = said.replace(tzinfo=known), said.replace(tzinfo=known, fold=1)
    if first.utcoffset() != second.utcoffset():
        raise QueryError(
            f"{text!r} is no single moment in {zone}, where clocks change then; write the offset,"
            ' such as "2024-01-31 12:30+01:00"'
        )
    return first
