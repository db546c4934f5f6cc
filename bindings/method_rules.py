"""What methods of expressions take and give: one rule each, over whole columns at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from windjoin.arrays import as_array
from windjoin.checking import Typed, check_comparable
from windjoin.columns import Values, load
from windjoin.durations import NANOSECONDS, Duration
from windjoin.errors import DataError
from windjoin.evaluate import both, compared, counted_in, doubles, shape_of
from windjoin.kinds import BOOL, FLOAT, INTEGER, NULL, TEXT, Kind, arrow_type, kind_of
from windjoin.methods import Coalesce, Extreme, Method

MOST_COMPARED = 16  # constants; more integers or texts are looked up in a table

Check = Callable[[Any], Kind]  # of a `checking._Context`
Evaluate = Callable[[Typed, list[Values]], Values]


@dataclass(frozen=True, slots=True)
class MethodRule:
    """The kind of what a method gives, or an error; and its values."""

    check: Check
    evaluate: Evaluate


def check_method(context: Any) -> Kind:
    """The kind of a `Method`."""
    return METHODS[context.node.name].check(context)


def evaluate_method(typed: Typed, parts: list[Values]) -> Values:
    """The values of a `Method`."""
    assert isinstance(typed.node, Method)
    return METHODS[typed.node.name].evaluate(typed, parts)


# -- is_in ----------------------------------------------------------------------------------


def _check_is_in(context: Any) -> Kind:
    for kind in context.kinds[1:]:
        check_comparable(context, context.kinds[0], kind)
    return BOOL


def _is_in(typed: Typed, parts: list[Values]) -> Values:
    value, *constants = parts
    if len(constants) > MOST_COMPARED:
        found = _looked_up(value, typed.parts[1:])
        if found is not None:
            return Values(BOOL, found, value.valid)
    data = np.zeros(shape_of(value), np.bool_)
    for constant in constants:
        data |= compared("==", value, constant).data
    return Values(BOOL, data, value.valid)


def _looked_up(value: Values, constants: Sequence[Typed]) -> Any:
    """Where a value is one of many constants of its own family; None if they are of others."""
    family, step = value.kind.family, value.kind.step
    if any((c.kind.family, c.kind.step) != (family, step) for c in constants):
        return None
    if family in ("text", "binary"):
        known = pa.array([c.value for c in constants], value.data.type)
        return np.asarray(pc.is_in(value.data, value_set=known))
    if not value.kind.exact or value.data.dtype == object:
        return None
    fitting = [c.value for c in constants if _fits(c.value, value.data.dtype)]
    return np.isin(value.data, np.array(fitting, value.data.dtype))


def _fits(value: int, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)


# -- cast -----------------------------------------------------------------------------------


def _check_cast(context: Any) -> Kind:
    (to,) = context.node.arguments
    kind = kind_of(to)
    own = context.kinds[0]
    if kind.family in ("nested", "null") or own.family == "nested":
        raise context.refuse(f"cannot become {to}", "cast numbers, booleans, texts and times")
    empty = pa.array([], arrow_type(own))
    try:
        _converted(empty, to)
    except pa.ArrowNotImplementedError:
        raise context.refuse(
            f"cannot become {to}", "cast to text first, or calculate the value"
        ) from None
    return kind


def _cast(typed: Typed, parts: list[Values]) -> Values:
    assert isinstance(typed.node, Method)
    (to,) = typed.node.arguments
    array = as_array(parts[0])
    try:
        return load(_converted(array, to))
    except pa.ArrowInvalid as error:
        row, reason = _first_failing(array, to)
        raise DataError(
            f"`{typed.node!r}`, row {row}: {array[row].as_py()!r} is no {to} without a change"
            f" ({reason}); calculate a value that fits, or keep such rows out of the table"
        ) from error


def _converted(array: Any, to: pa.DataType) -> Any:
    if pa.types.is_integer(to) and pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    return array.cast(to, safe=True)


def _first_failing(array: Any, to: pa.DataType) -> tuple[int, str]:
    """The first row that cannot be converted, in so many steps as its number has bits, and why."""
    first, last = 0, len(array)
    while last - first > 1:
        middle = (first + last) // 2
        try:
            _converted(array[first:middle], to)
        except pa.ArrowInvalid:
            last = middle
        else:
            first = middle
    try:
        _converted(array[first:last], to)
    except pa.ArrowInvalid as error:
        return first, str(error).splitlines()[0]
    raise AssertionError("none of these rows fails alone")


# -- texts ----------------------------------------------------------------------------------


def _of_text(gives: Kind) -> Check:
    def rule(context: Any) -> Kind:
        if context.kinds[0].family != "text":
            raise context.refuse(f".{context.node.name}() is for texts", 'use .cast("string")')
        return gives

    return rule


def _on_text(function: Callable[..., Any]) -> Evaluate:
    def values(typed: Typed, parts: list[Values]) -> Values:
        assert isinstance(typed.node, Method)
        (value,) = parts
        answer = load(function(value.data, *typed.node.arguments))
        answer.data = answer.data.astype(np.int64) if answer.kind == INTEGER else answer.data
        return Values(typed.kind, answer.data, value.valid)

    return values


# -- times ----------------------------------------------------------------------------------

_UNITS: dict[str, Any] = {
    "w": "week",
    "d": "day",
    "h": "hour",
    "m": "minute",
    "s": "second",
    "ms": "millisecond",
    "us": "microsecond",
    "ns": "nanosecond",
}
_DATED = ("timestamp", "date")


def _of_time(families: tuple[str, ...]) -> Check:
    def rule(context: Any) -> Kind:
        if context.kinds[0].family not in families:
            raise context.refuse(
                f".{context.node.name}() is for {' and '.join(families)} columns",
                'use .cast("timestamp[us]")',
            )
        return INTEGER

    return rule


def _part(function: Callable[[Any], Any]) -> Evaluate:
    def values(typed: Typed, parts: list[Values]) -> Values:
        (value,) = parts
        answer = load(function(as_array(value)))
        return Values(INTEGER, answer.data.astype(np.int64), value.valid)

    return values


def _check_truncate(context: Any) -> Kind:
    own: Kind = context.kinds[0]
    _of_time(("timestamp",))(context)
    period: Duration = context.node.arguments[0]
    if (Fraction(period.nanoseconds, 10**9) / own.step).denominator != 1:
        raise context.refuse(
            f'.dt.truncate("{period}") is finer than the column', "give whole units of the column"
        )
    return own


def _truncate(typed: Typed, parts: list[Values]) -> Values:
    assert isinstance(typed.node, Method)
    (value,) = parts
    nanoseconds = typed.node.arguments[0].nanoseconds
    name = next(name for name, size in NANOSECONDS.items() if nanoseconds % size == 0)
    floored = pc.floor_temporal(
        as_array(value),
        nanoseconds // NANOSECONDS[name],
        unit=_UNITS[name],
        week_starts_monday=True,
    )
    return Values(typed.kind, load(floored).data, value.valid)


# -- coalesce -------------------------------------------------------------------------------


def check_coalesce(context: Any) -> Kind:
    """The kind that has all values of a `Coalesce` or an `Extreme`."""
    kinds: list[Kind] = [kind for kind in context.kinds if kind.family != "null"]
    if not kinds:
        return NULL
    for other in kinds[1:]:
        check_comparable(context, kinds[0], other)
    if any(kind.family == "float" for kind in kinds):
        return FLOAT
    if not kinds[0].exact:
        return kinds[0]
    step = min(kind.step for kind in kinds)
    scaled = [kind.counted_in(step) for kind in kinds]
    families = {kind.family for kind in kinds}
    family = families.pop() if len(families) == 1 else _WIDER[frozenset(families)]
    low, high = min(kind.low for kind in scaled), max(kind.high for kind in scaled)
    return Kind(family, step, low, high, kinds[0].zone)


_WIDER: dict[frozenset[str], Any] = {
    frozenset(("integer", "decimal")): "decimal",
    frozenset(("date", "timestamp")): "timestamp",
}


def coalesced(typed: Typed, parts: list[Values]) -> Values:
    """The values of a `Coalesce`."""
    assert isinstance(typed.node, Coalesce)
    if typed.kind.family in ("text", "binary"):
        return load(pc.coalesce(*(part.data for part in parts)))
    shape = np.broadcast_shapes(*map(shape_of, parts))
    data: Any = None
    valid = np.zeros(shape, np.bool_)
    for part, own in zip(parts, _alike(typed.kind, parts), strict=True):
        here = np.ones((), np.bool_) if part.valid is None else part.valid
        data = own if data is None else np.where(valid, data, own)
        valid = valid | here
    data = np.broadcast_to(data, shape)
    return Values(typed.kind, data, None if valid.all() else valid)


def check_extreme(context: Any) -> Kind:
    """The kind of an `Extreme`: one of numbers, times or durations."""
    kind = check_coalesce(context)
    if not kind.exact and kind.family not in ("float", "null"):
        raise context.refuse(f"{context.node.name} is for numbers and times")
    return kind


def extreme(typed: Typed, parts: list[Values]) -> Values:
    """The values of an `Extreme`; those that computed ones are made of fit their kind."""
    assert isinstance(typed.node, Extreme)
    take = np.maximum if typed.node.name == "greatest" else np.minimum
    data = reduce(take, _alike(typed.kind, parts))
    valid: Any = None
    for part in parts:
        valid = both(valid, part.valid)
    return Values(typed.kind, data, valid)


def _alike(kind: Kind, parts: Sequence[Values]) -> list[Any]:
    """The values of all parts in one type, which has each of them as it is."""
    data = [_as_kind(kind, part) for part in parts]
    if not kind.exact or np.result_type(*data).kind != "f":
        return data
    # of uint64 beside int64 NumPy would make doubles
    return [one.astype(np.uint64 if kind.fits_uint64 else object) for one in data]


def _as_kind(kind: Kind, part: Values) -> Any:
    if part.kind.family == "null":
        return np.zeros(len(part.data), np.float64 if kind == FLOAT else np.int64)
    if kind.family == "float":
        return doubles(part)
    return counted_in(kind.step, part) if kind.exact else part.data


METHODS: dict[str, MethodRule] = {
    "is_in": MethodRule(_check_is_in, _is_in),
    "cast": MethodRule(_check_cast, _cast),
    "str.lower": MethodRule(_of_text(TEXT), _on_text(pc.utf8_lower)),
    "str.upper": MethodRule(_of_text(TEXT), _on_text(pc.utf8_upper)),
    "str.strip": MethodRule(_of_text(TEXT), _on_text(pc.utf8_trim_whitespace)),
    "str.length": MethodRule(_of_text(INTEGER), _on_text(pc.utf8_length)),
    "str.contains": MethodRule(_of_text(BOOL), _on_text(pc.match_substring)),
    "str.starts_with": MethodRule(_of_text(BOOL), _on_text(pc.starts_with)),
    "str.ends_with": MethodRule(_of_text(BOOL), _on_text(pc.ends_with)),
    "dt.truncate": MethodRule(_check_truncate, _truncate),
    "dt.year": MethodRule(_of_time(_DATED), _part(pc.year)),
    "dt.month": MethodRule(_of_time(_DATED), _part(pc.month)),
    "dt.day": MethodRule(_of_time(_DATED), _part(pc.day)),
    "dt.weekday": MethodRule(_of_time(_DATED), _part(pc.day_of_week)),
    "dt.hour": MethodRule(_of_time(("timestamp", "time")), _part(pc.hour)),
    "dt.minute": MethodRule(_of_time(("timestamp", "time")), _part(pc.minute)),
    "dt.second": MethodRule(_of_time(("timestamp", "time")), _part(pc.second)),
}
