"""Values made of one expression and constants: ``x.is_in([...])``, ``x.cast("int64")``,
``x.str.lower()``, ``x.dt.hour()``; and the first value of several, ``coalesce``.

What each of them takes and gives is a `windjoin.method_rules.MethodRule`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
from windjoin.durations import Duration, is_duration, parse_duration
from windjoin.errors import QueryError, hint
from windjoin.expressions import Between, Column, Comparison, Constant, Expression, as_expression

# methods that may give a condition; types, known later, say whether ``cast`` does
CONDITIONS = ("cast", "is_in", "str.contains", "str.ends_with", "str.starts_with")


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Method(Expression):
    """``name`` of an operand, with constants; of ``x.str.lower()`` it is ``str.lower``."""

    name: str
    operand: Expression
    arguments: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        shown = ", ".join(map(_shown, self.arguments))
        if self.name == "is_in":
            shown = f"[{shown}]"
        return f"{self.operand._inner(Column.level)}.{self.name}({shown})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Coalesce(Expression):
    """The first of several values that is there."""

    values: tuple[Expression, ...]

    def __repr__(self) -> str:
        return f"coalesce({', '.join(map(repr, self.values))})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Extreme(Expression):
    """The greatest or the least of several values; null where one of them is."""

    name: Literal["greatest", "least"]
    values: tuple[Expression, ...]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.values))})"


@dataclass(frozen=True, slots=True)
class TextMethods:
    """What can be asked of texts: ``column.str``."""

    _operand: Expression

    def lower(self) -> Method:
        """All letters small, by Unicode."""
        return Method("str.lower", self._operand)

    def upper(self) -> Method:
        """All letters capital, by Unicode."""
        return Method("str.upper", self._operand)

    def strip(self) -> Method:
        """Without white space at both ends."""
        return Method("str.strip", self._operand)

    def length(self) -> Method:
        """How many characters there are (code points, not bytes)."""
        return Method("str.length", self._operand)

    def contains(self, text: str) -> Method:
        """Whether ``text`` is in it, letter for letter (no pattern)."""
        return Method("str.contains", self._operand, (_text("str.contains", text),))

    def starts_with(self, text: str) -> Method:
        """Whether it begins with ``text``."""
        return Method("str.starts_with", self._operand, (_text("str.starts_with", text),))

    def ends_with(self, text: str) -> Method:
        """Whether it ends with ``text``."""
        return Method("str.ends_with", self._operand, (_text("str.ends_with", text),))


@dataclass(frozen=True, slots=True)
class TimeMethods:
    """What can be asked of times: ``column.dt``.  With a zone they mean its local time."""

    _operand: Expression

    def truncate(self, every: object) -> Method:
        """The last full ``every``, such as "1h" or "15m", at or before the time; weeks begin on
        Monday, multiples are counted from 1970 on."""
        return Method("dt.truncate", self._operand, (_period(every),))

    def year(self) -> Method:
        """The year."""
        return Method("dt.year", self._operand)

    def month(self) -> Method:
        """The month, from 1 to 12."""
        return Method("dt.month", self._operand)

    def day(self) -> Method:
        """The day of the month, from 1."""
        return Method("dt.day", self._operand)

    def hour(self) -> Method:
        """The hour of the day, from 0 to 23."""
        return Method("dt.hour", self._operand)

    def minute(self) -> Method:
        """The minute of the hour, from 0 to 59."""
        return Method("dt.minute", self._operand)

    def second(self) -> Method:
        """The second of the minute, from 0 to 59."""
        return Method("dt.second", self._operand)

    def weekday(self) -> Method:
        """The day of the week: Monday is 0, as in Python and pandas."""
        return Method("dt.weekday", self._operand)


def within(
    operand: Expression, length: Any, before: object, after: object, of: object
) -> Expression:
    """Whether one time is at most ``length`` before, after or away from another."""
    given = [other for other in (before, after, of) if other is not None]
    if len(given) != 1:
        raise QueryError(
            f"`{operand!r}.within({length!r}, ...)` takes one of before=, after= and of=,"
            f" got {len(given)}"
        )
    said = isinstance(length, str) or is_duration(length)
    if said:
        negative = parse_duration(length, f"{operand!r}.within").nanoseconds < 0
    else:
        if isinstance(length, bool) or not isinstance(length, (int, float, Decimal)):
            raise QueryError(
                f'`{operand!r}.within({length!r}, ...)`: give a duration such as "30s", or a'
                " number where times are plain numbers"
            )
        negative = length < 0
    if negative:
        raise QueryError(
            f"`{operand!r}.within({length!r}, ...)`: a length of time is 0 or more; say before= or"
            " after= for the direction"
        )
    nothing: Any = "0s" if said else 0
    if of is not None:
        return Comparison("<=", abs(operand - as_expression(of)), as_expression(length))
    apart = as_expression(before) - operand if before is not None else operand - given[0]
    return Between(apart, as_expression(nothing), as_expression(length))


def is_in(operand: Expression, values: object) -> Method:
    """Whether an expression equals one of some constants."""
    if isinstance(values, (str, bytes, Expression)) or not isinstance(values, Iterable):
        raise QueryError(
            f"`{operand!r}.is_in({values!r})`: give a list of constants, such as [1, 2]"
        )
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = values.to_pylist()
    constants = [as_expression(value) for value in values]
    for constant in constants:
        if not isinstance(constant, Constant):
            raise QueryError(
                f"`{operand!r}.is_in(...)` takes constants, got `{constant!r}`; compare columns"
                " with == and join the comparisons with |"
            )
    distinct = {constant.key: constant for constant in constants}
    return Method("is_in", operand, tuple(distinct.values()))


def cast(operand: Expression, to: object) -> Method:
    """An expression as another type; ``to`` is an Arrow type or the name of one."""
    if isinstance(to, pa.DataType):
        return Method("cast", operand, (to,))
    if not isinstance(to, str):
        raise QueryError(f"`{operand!r}.cast({to!r})`: {_TYPES}")
    return Method("cast", operand, (_type_called(operand, to),))


def coalesce(*values: object) -> Coalesce:
    """The first of some values that is neither null nor NaN; the last may be a constant.

    >>> import windjoin as wj
    >>> a = wj.stream("a", time="t", window=5)
    >>> wj.coalesce(a["price"], a["last_price"], 0.0)
    coalesce(a["price"], a["last_price"], 0.0)
    """
    expressions = tuple(map(as_expression, values))
    if len(expressions) < 2:
        raise QueryError(f"coalesce takes two values or more, got {len(expressions)}")
    if isinstance(expressions[0], Constant):
        raise QueryError(
            f"coalesce({expressions[0]!r}, ...): the first value is always there;"
            " begin with a column"
        )
    return Coalesce(expressions)


def greatest(*values: object) -> Extreme:
    """The greatest of some numbers or times, null where one is null: the time of a result is the
    greatest of those of its members.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window="5s") for name in "ab")
    >>> wj.greatest(a["t"], b["t"]).alias("t")
    greatest(a["t"], b["t"]).alias("t")
    """
    return _extreme("greatest", values)


def least(*values: object) -> Extreme:
    """The least of some numbers or times, null where one is null.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window="5s") for name in "ab")
    >>> wj.least(a["x"], b["x"]) >= 0
    least(a["x"], b["x"]) >= 0
    """
    return _extreme("least", values)


def _extreme(name: Literal["greatest", "least"], values: tuple[object, ...]) -> Extreme:
    expressions = tuple(map(as_expression, values))
    if len(expressions) < 2:
        raise QueryError(f"{name} takes two values or more, got {len(expressions)}")
    return Extreme(name, expressions)


_TYPES = 'give an Arrow type or the name of one, such as "int64", "float64", "string" or "date32"'
_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "string", "large_string", "binary", "date32", "date64"),
    *(f"timestamp[{unit}]" for unit in ("s", "ms", "us", "ns")),
    *(f"duration[{unit}]" for unit in ("s", "ms", "us", "ns")),
)


def _type_called(operand: Expression, name: str) -> pa.DataType:
    if name not in _NAMES:
        raise QueryError(
            f"`{operand!r}.cast({name!r})`: there is no such type{hint(name, _NAMES)}; {_TYPES}"
        )
    called: Any = pa.type_for_alias
    found: pa.DataType = called(name)
    return found


def _text(method: str, text: object) -> str:
    if not isinstance(text, str):
        raise QueryError(f".{method}({text!r}): give a text, not {type(text).__name__}")
    return text


def _period(every: object) -> Duration:
    period = parse_duration(every, ".dt.truncate")
    if period.nanoseconds <= 0:
        raise QueryError(f".dt.truncate({every!r}): give a length of time above 0")
    return period


def _shown(argument: Any) -> str:
    if isinstance(argument, (pa.DataType, str, Duration)):
        return f'"{argument}"' if '"' not in str(argument) else repr(str(argument))
    return repr(argument)
