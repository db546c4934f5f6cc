"""What users compare: a tree of columns, constants and operators, read before any data is seen.

Python's operators build the tree; nothing is computed here.  ``==`` builds a node too, so trees are
compared with `Expression.same` and looked up by `Expression.key`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, cast

import numpy as np
from windjoin.durations import Duration
from windjoin.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa
    from windjoin.methods import Method, TextMethods, TimeMethods


Closed = Literal["both", "left", "right", "neither"]
CLOSED = ("both", "left", "right", "neither")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}

# how tightly a form of text binds; the higher, the tighter
_COMPARE, _OR, _AND, _SUM, _PRODUCT, _UNARY, _ATOM = range(7)
_LEVEL = {"|": _OR, "&": _AND, "+": _SUM, "-": _SUM}
_LEVEL |= dict.fromkeys(("*", "/", "//", "%"), _PRODUCT)
_NUMBERS = (bool, int, float, Decimal, np.generic)
_CONSTANTS = (*_NUMBERS, str, bytes, datetime, date, time, timedelta, Duration)


class Expression:
    """A value computed from the columns of one combination of rows.

    >>> import windjoin as wj
    >>> a = wj.stream("a", time="t", window="10s")
    >>> b = wj.stream("b", time="t", window="10s")
    >>> (abs(a["x"] - b["y"]) <= 0.5) & (a["k"] == b["k"])
    (abs(a["x"] - b["y"]) <= 0.5) & (a["k"] == b["k"])
    """

    __slots__ = ()
    __array_ufunc__: ClassVar[None] = None  # NumPy scalars on the left give way to our operators
    level: ClassVar[int] = _ATOM
    called: ClassVar[bool] = False  # by a function of the user's

    # -- the tree -------------------------------------------------------------------------

    def _values(self) -> Iterator[Any]:
        for field in fields(cast(Any, self)):
            value = getattr(self, field.name)
            yield from value if isinstance(value, tuple) else (value,)

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions this one is made of, in order.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> (a["x"] + b["y"] < 3).parts
        (a["x"] + b["y"], 3)
        """
        return tuple(value for value in self._values() if isinstance(value, Expression))

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable value that is equal for trees that read the same.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> {a["x"].key: 1}[a["x"].key], a["x"].key == b["x"].key
        (1, False)
        """
        values = self._values()
        keys = (value.key if isinstance(value, Expression) else value for value in values)
        return (type(self).__name__, *keys)

    def same(self, other: Expression) -> bool:
        """Whether both read the same; ``==`` builds a comparison instead.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> (a["x"] + 1).same(a["x"] + 1), a["x"].same(b["x"])
        (True, False)
        """
        return self.key == other.key

    def columns(self) -> Iterator[Column]:
        """Every column in it, from left to right, repeated as written.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> list((a["x"] + b["y"] < a["x"]).columns())
        [a["x"], b["y"], a["x"]]
        """
        for part in self.parts:
            yield from part.columns()

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams in it, in order of appearance.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> (a["x"] + b["y"] < a["x"]).streams
        ('a', 'b')
        """
        return tuple(dict.fromkeys(column.stream for column in self.columns()))

    @property
    def calls(self) -> bool:
        """Whether a function of the user's is in it.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> (wj.udf(abs, a["x"]) < 3).calls, (abs(a["x"]) < 3).calls
        (True, False)
        """
        return self.called or any(part.calls for part in self.parts)

    def _inner(self, level: int) -> str:
        """Its text, in parentheses where it binds less tightly than ``level``."""
        return f"({self!r})" if self.level < level else repr(self)

    def __hash__(self) -> int:
        return hash(self.key)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"`{self!r}` has no truth value before there is data: `and`, `or`, `not`, `in` and"
            " chained comparisons such as 0 < x < 1 cannot be used on expressions; put the"
            " conditions in a list, or write & for and, | for or, ~ for not, .between(low, high)"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(f"`{self!r}` is an expression and cannot be iterated over")

    # -- comparisons ----------------------------------------------------------------------

    def __eq__(self, other: object) -> Comparison:  # type: ignore[override]
        return Comparison("==", self, as_expression(other))

    def __ne__(self, other: object) -> Comparison:  # type: ignore[override]
        return Comparison("!=", self, as_expression(other))

    def __lt__(self, other: object) -> Comparison:
        return Comparison("<", self, as_expression(other))

    def __le__(self, other: object) -> Comparison:
        return Comparison("<=", self, as_expression(other))

    def __gt__(self, other: object) -> Comparison:
        return Comparison(">", self, as_expression(other))

    def __ge__(self, other: object) -> Comparison:
        return Comparison(">=", self, as_expression(other))

    def between(self, low: object, high: object, closed: Closed = "both") -> Between:
        """``low <= self <= high``; ``closed`` says which ends belong to it, as in pandas.

        >>> import windjoin as wj
        >>> a = wj.stream("a", time="t", window=5)
        >>> b = wj.stream("b", time="t", window=5)
        >>> (a["x"] - b["y"]).between(0, 10, closed="left")
        (a["x"] - b["y"]).between(0, 10, closed="left")
        """
        return Between(self, as_expression(low), as_expression(high), closed)

    def is_null(self) -> Unary:
        """True where there is no value; NaN counts as no value.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> wj.join(a, b, on=(a["k"] == b["k"]) | a["k"].is_null()).on
        ((a["k"] == b["k"]) | a["k"].is_null(),)
        """
        return Unary("is_null", self)

    def is_in(self, values: Iterable[object]) -> Method:
        """Whether it equals one of some constants.

        >>> import windjoin as wj
        >>> wj.stream("a", time="t", window=5)["k"].is_in([1, 2, 2])
        a["k"].is_in([1, 2])
        """
        from windjoin.methods import is_in

        return is_in(self, values)

    def within(
        self, length: object, *, before: object = None, after: object = None, of: object = None
    ) -> Expression:
        """Whether this time is at most ``length`` before another, after it, or away from it.

        Windows count from the newest member of a combination; this counts from one to another.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window="1h") for name in "ab")
        >>> a["t"].within("30m", before=b["t"])
        (b["t"] - a["t"]).between("0s", "30m")
        """
        from windjoin.methods import within

        return within(self, length, before, after, of)

    # -- other types ----------------------------------------------------------------------

    def cast(self, to: pa.DataType | str) -> Method:
        """The same value as another type; a `DataError` where that would change it.

        >>> import windjoin as wj
        >>> wj.stream("a", time="t", window=5)["k"].cast("int64")
        a["k"].cast("int64")
        """
        from windjoin.methods import cast

        return cast(self, to)

    # -- logic ----------------------------------------------------------------------------

    def __and__(self, other: object) -> Binary:
        return Binary("&", self, as_expression(other))

    def __rand__(self, other: object) -> Binary:
        return Binary("&", as_expression(other), self)

    def __or__(self, other: object) -> Binary:
        return Binary("|", self, as_expression(other))

    def __ror__(self, other: object) -> Binary:
        return Binary("|", as_expression(other), self)

    def __invert__(self) -> Unary:
        return Unary("~", self)

    # -- arithmetic -----------------------------------------------------------------------

    def __add__(self, other: object) -> Binary:
        return Binary("+", self, as_expression(other))

    def __radd__(self, other: object) -> Binary:
        return Binary("+", as_expression(other), self)

    def __sub__(self, other: object) -> Binary:
        return Binary("-", self, as_expression(other))

    def __rsub__(self, other: object) -> Binary:
        return Binary("-", as_expression(other), self)

    def __mul__(self, other: object) -> Binary:
        return Binary("*", self, as_expression(other))

    def __rmul__(self, other: object) -> Binary:
        return Binary("*", as_expression(other), self)

    def __truediv__(self, other: object) -> Binary:
        return Binary("/", self, as_expression(other))

    def __rtruediv__(self, other: object) -> Binary:
        return Binary("/", as_expression(other), self)

    def __floordiv__(self, other: object) -> Binary:
        return Binary("//", self, as_expression(other))

    def __rfloordiv__(self, other: object) -> Binary:
        return Binary("//", as_expression(other), self)

    def __mod__(self, other: object) -> Binary:
        return Binary("%", self, as_expression(other))

    def __rmod__(self, other: object) -> Binary:
        return Binary("%", as_expression(other), self)

    def __neg__(self) -> Unary:
        return Unary("-", self)

    def __abs__(self) -> Unary:
        return Unary("abs", self)

    def alias(self, name: str) -> Alias:
        """The same value under another name, for ``select=``.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> (a["x"] - b["x"]).alias("apart")
        (a["x"] - b["x"]).alias("apart")
        """
        return Alias(self, name)

    # mypy takes `str` for this property in all annotations that follow it in the class
    @property
    def str(self) -> TextMethods:
        """What can be asked of texts: lower, upper, strip, length, contains, starts_with, ...

        >>> import windjoin as wj
        >>> wj.stream("a", time="t", window=5)["name"].str.lower()
        a["name"].str.lower()
        """
        from windjoin.methods import TextMethods

        return TextMethods(self)

    @property
    def dt(self) -> TimeMethods:
        """What can be asked of times: truncate, year, month, day, hour, minute, second, weekday.

        >>> import windjoin as wj
        >>> wj.stream("a", time="t", window="5s")["t"].dt.truncate("15m")
        a["t"].dt.truncate("15m")
        """
        from windjoin.methods import TimeMethods

        return TimeMethods(self)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Column(Expression):
    """Column ``name`` of stream ``stream``: what ``calls["person"]`` gives."""

    stream: str
    name: str

    def columns(self) -> Iterator[Column]:
        yield self

    def __repr__(self) -> str:
        return f"{self.stream}[{_quote(self.name)}]"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Constant(Expression):
    """A value written in the query."""

    value: Any

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, (float, np.floating, Decimal)) and math.isnan(value):
            raise QueryError("NaN compares false with everything; use .is_null() to find NaN")
        if isinstance(value, (np.datetime64, np.timedelta64)) and np.isnat(value):
            raise QueryError("NaT compares false with everything; use .is_null() to find nulls")

    @property
    def key(self) -> tuple[Any, ...]:
        return ("constant", type(self.value).__name__, self.value)

    @property
    def level(self) -> int:  # type: ignore[override]
        return _UNARY if repr(self).startswith("-") else _ATOM

    def __repr__(self) -> str:
        value = self.value
        if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
            value = value.item()
        if isinstance(value, (str, Duration)):
            return _quote(str(value))
        return repr(value)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Unary(Expression):
    """``-x``, ``abs(x)``, ``~x`` or ``x.is_null()``."""

    operator: Literal["-", "abs", "~", "is_null"]
    operand: Expression

    @property
    def level(self) -> int:  # type: ignore[override]
        return _UNARY if self.operator in "-~" else _ATOM

    def __repr__(self) -> str:
        if self.operator == "abs":
            return f"abs({self.operand!r})"
        if self.operator == "is_null":
            return f"{self.operand._inner(_ATOM)}.is_null()"
        return f"{self.operator}{self.operand._inner(_UNARY)}"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Binary(Expression):
    """Arithmetic (``+ - * / // %``) or logic (``& |``) on two values."""

    operator: Literal["+", "-", "*", "/", "//", "%", "&", "|"]
    left: Expression
    right: Expression

    @property
    def level(self) -> int:  # type: ignore[override]
        return _LEVEL[self.operator]

    def __repr__(self) -> str:
        level = self.level
        return f"{self.left._inner(level)} {self.operator} {self.right._inner(level + 1)}"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Comparison(Expression):
    """``left <operator> right``."""

    operator: Literal["<", "<=", ">", ">=", "==", "!="]
    left: Expression
    right: Expression
    level: ClassVar[int] = _COMPARE

    def __repr__(self) -> str:
        return f"{self.left._inner(_OR)} {self.operator} {self.right._inner(_OR)}"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Between(Expression):
    """``low <= value <= high``, with the ends that ``closed`` names."""

    value: Expression
    low: Expression
    high: Expression
    closed: Closed = "both"

    def __post_init__(self) -> None:
        if self.closed not in CLOSED:
            raise QueryError(
                f"between(closed={self.closed!r}): closed is one of {', '.join(CLOSED)}"
            )

    def __repr__(self) -> str:
        closed = "" if self.closed == "both" else f', closed="{self.closed}"'
        return f"{self.value._inner(_ATOM)}.between({self.low!r}, {self.high!r}{closed})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Alias(Expression):
    """``expression`` under the name ``name``."""

    expression: Expression
    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise QueryError(f".alias({self.name!r}): the name must be a text that is not empty")

    def __repr__(self) -> str:
        return f"{self.expression._inner(_ATOM)}.alias({_quote(self.name)})"


def as_expression(value: object) -> Expression:
    """``value`` itself if it is an expression, else a constant.

    >>> as_expression(5)
    5
    """
    if isinstance(value, Expression):
        return value
    if value is None:
        raise QueryError("None compares false with everything; use .is_null() to find nulls")
    if isinstance(value, _CONSTANTS):
        return Constant(value)
    raise QueryError(
        f"{value!r} ({type(value).__name__}) cannot stand in an expression; use a column, a number,"
        " text, bytes, a Decimal, a date, time, datetime or timedelta"
    )


def _quote(text: str) -> str:
    """A Python text literal in double quotes."""
    shown = repr(text)
    return shown if '"' in text else '"' + shown[1:-1].replace("\\'", "'") + '"'
