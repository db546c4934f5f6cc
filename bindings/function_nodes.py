"""Nodes of functions of columns: those of users, and named measures of two columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

from windjoin.errors import QueryError
from windjoin.expressions import Column, Expression
from windjoin.signatures import check_count, name_of

if TYPE_CHECKING:
    _Columns2 = tuple["Expression", "Expression"]
    _Columns3 = tuple["Expression", "Expression", "Expression"]
    _Columns4 = tuple["Expression", "Expression", "Expression", "Expression"]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Udf(Expression):
    """A value that a user's scalar function returns, null where an argument is null."""

    called: ClassVar[bool] = True

    function: Callable[..., Any]
    arguments: tuple[Expression, ...]

    def __repr__(self) -> str:
        return f"udf({', '.join([name_of(self.function), *map(repr, self.arguments)])})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Parallel(Expression):
    """Two list columns of one stream that go together: items and their weights."""

    items: Column
    weights: Column

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.items, self.weights)

    @property
    def key(self) -> tuple[Any, ...]:
        return ("parallel", self.items.key, self.weights.key)

    def __repr__(self) -> str:
        return f"({self.items!r}, {self.weights!r})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class PairFunction(Expression):
    """A named measure of two columns, such as a distance or an overlap, to be compared.

    What the name means (types, evaluation, index) is a `windjoin.pairs.PairDefinition`.
    """

    name: str
    left: Expression
    right: Expression

    def __repr__(self) -> str:
        return f"{self.name}({self.left!r}, {self.right!r})"


# that editors and type checkers know the parameters of a lambda
@overload
def udf(function: Callable[[Any], object], column: Expression, /) -> Udf: ...
@overload
def udf(function: Callable[[Any, Any], object], *columns: *_Columns2) -> Udf: ...
@overload
def udf(function: Callable[[Any, Any, Any], object], *columns: *_Columns3) -> Udf: ...
@overload
def udf(function: Callable[[Any, Any, Any, Any], object], *columns: *_Columns4) -> Udf: ...
@overload
def udf(function: Callable[..., object], *columns: Expression) -> Udf: ...


def udf(function: Callable[..., object], *columns: Expression) -> Udf:
    """What any scalar function of columns returns which Numba can compile.

    A function that returns True or False is a condition; one that returns a number is compared,
    calculated with or selected.  One that raises for rows of a result ends the join with a
    `FunctionError`.

    >>> import windjoin as wj
    >>> a = wj.stream("a", time="t", window=5)
    >>> b = wj.stream("b", time="t", window=5)
    >>> wj.udf(lambda x, y: x * y > 1.0, a["x"], b["y"])
    udf(lambda, a["x"], b["y"])
    >>> wj.udf(lambda x, y: x * y, a["x"], b["y"]) > 1.0
    udf(lambda, a["x"], b["y"]) > 1.0
    """
    if not callable(function):
        raise QueryError(
            f"udf({function!r}, ...): the first argument must be a function,"
            " the columns it is called with follow"
        )
    if not columns:
        raise QueryError("udf needs the columns its function is called with, got the function only")
    for column in columns:
        if not isinstance(column, Expression) or not column.streams:
            raise QueryError(
                f"udf argument {column!r} is not a column expression;"
                " constants belong inside the function"
            )
    check_count(function, len(columns))
    return Udf(function, columns)
