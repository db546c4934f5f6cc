"""Conditions written as text in the syntax of Python: parsed and built, never executed.

Only what `windjoin.expressions` can express is understood: columns, constants, arithmetic,
comparisons, ``&``, ``|``, ``~``, ``abs``, named measures and methods such as ``.between``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, NoReturn

from windjoin import pairs, similarity
from windjoin.errors import QueryError, hint
from windjoin.expressions import Expression
from windjoin.methods import TextMethods, TimeMethods, coalesce, greatest, least
from windjoin.streams import Stream

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "coalesce": coalesce,
    "Decimal": Decimal,
    "date": date,
    "datetime": datetime,
    "greatest": greatest,
    "least": least,
    "time": time,
    "timedelta": timedelta,
}
_METHODS = ("between", "within", "is_null", "is_in", "cast", "alias")
_SPACES = {"str": TextMethods, "dt": TimeMethods}  # of methods: x.str.lower()
_NUMBERS = (int, float, Decimal, date, time, timedelta)


def parse_expression(text: str, streams: Mapping[str, Stream]) -> Expression:
    """The expression that ``text`` describes, over columns of ``streams``.

    >>> import windjoin as wj
    >>> streams = {name: wj.stream(name, time="t", window="5s") for name in ("a", "b")}
    >>> parse_expression('abs(a["x"] - b["y"]) <= 0.5', streams)
    abs(a["x"] - b["y"]) <= 0.5
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
        value = _Builder(streams).build(tree.body)
    except SyntaxError as error:
        raise QueryError(f"`{text}` is not an expression: {error.msg}") from error
    except RecursionError as error:
        raise QueryError(f"`{text[:40]}...` is nested too deeply") from error
    except (QueryError, TypeError, ValueError, ArithmeticError) as error:
        reason = "not a number" if isinstance(error, InvalidOperation) else str(error)
        raise QueryError(f"`{text}`: {reason}") from error
    if not isinstance(value, Expression):
        raise QueryError(f"`{text}` is not an expression over columns of streams")
    return value


class _Builder:
    """One expression, from the leaves up."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self.streams = streams

    def build(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | bytes()):
                return node.value
            case ast.Name():
                return self._name(node.id)
            case ast.Subscript(value=of, slice=ast.Constant(value=str() as column)):
                return self._column(of, column)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return _UNARY[type(op)](self.build(operand))
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
                return self._binary(_BINARY[type(op)], self.build(left), self.build(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](self.build(left), self.build(right))
            case ast.Call():
                return self._call(node)
        _refuse(node)

    def _name(self, name: str) -> Any:
        if name in self.streams:
            return self.streams[name]
        if name == "UTC":
            return UTC
        raise QueryError(f"{name!r} is not a stream of this query{hint(name, self.streams)}")

    def _column(self, of: ast.expr, column: str) -> Any:
        stream = self.build(of)
        if not isinstance(stream, Stream):
            raise QueryError(f"`{ast.unparse(of)}` has no columns; only streams do")
        return stream[column]

    @staticmethod
    def _binary(apply: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        if not isinstance(left, Expression) and not isinstance(right, Expression):
            for value in (left, right):  # no texts: "x" * 10**9 would fill the memory
                if not isinstance(value, _NUMBERS):
                    raise QueryError(f"{value!r} is not a number to calculate with")
        return apply(left, right)

    def _call(self, node: ast.Call) -> Any:
        function = self._function(node.func)
        positional = [self._argument(argument) for argument in node.args]
        named = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                _refuse(node)
            named[keyword.arg] = self._argument(keyword.value)
        return function(*positional, **named)

    def _argument(self, node: ast.expr) -> Any:
        """A value, the pair of columns that stands for a weighted set, or a list of constants."""
        if isinstance(node, ast.Tuple):
            return tuple(self.build(element) for element in node.elts)
        if isinstance(node, ast.List):
            return [self.build(element) for element in node.elts]
        return self.build(node)

    def _function(self, node: ast.expr) -> Callable[..., Any]:
        match node:
            case (
                ast.Name(id=name)
                | ast.Attribute(
                    value=ast.Name(id="wj" | "windjoin" | "datetime" | "decimal"), attr=name
                )
            ):
                return _named(name)
            case ast.Attribute(value=of, attr=name) if name in _METHODS:
                return _method(self._expression(of, name), name)
            case ast.Attribute(value=ast.Attribute(value=of, attr=space), attr=name) if (
                space in _SPACES and not name.startswith("_") and hasattr(_SPACES[space], name)
            ):
                return _method(getattr(self._expression(of, space), space), name)
        raise QueryError(f"`{ast.unparse(node)}` is not one of {', '.join(functions())}")

    def _expression(self, node: ast.expr, name: str) -> Expression:
        value = self.build(node)
        if not isinstance(value, Expression):
            raise QueryError(f"`{ast.unparse(node)}` is no column: it has no .{name}")
        return value


def _method(of: object, name: str) -> Callable[..., Any]:
    method: Callable[..., Any] = getattr(of, name)
    return method


def functions() -> list[str]:
    """All functions and methods that text may call."""
    spaced = [
        f".{space}.{name}"
        for space, methods in _SPACES.items()
        for name in vars(methods)
        if not name.startswith("_")
    ]
    methods = [f".{name}" for name in _METHODS] + spaced
    return [*_CONSTRUCTORS, *sorted(pairs.known()), *methods]


def _named(name: str) -> Callable[..., Any]:
    if name == "udf":
        raise QueryError("udf is for programs: text is never executed")
    if name in _CONSTRUCTORS:
        return _CONSTRUCTORS[name]
    if name not in pairs.known():
        raise QueryError(f"{name!r} is not one of {', '.join(functions())}")
    measure: Callable[..., Any] = getattr(similarity, name, partial(similarity.measure, name))
    return measure


def _refuse(node: ast.expr) -> NoReturn:
    shown = ast.unparse(node)
    match node:
        case ast.Compare(ops=[_, _, *_]):
            reason = "is a chain of comparisons; write two, or .between(low, high)"
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Compare(ops=[ast.In() | ast.NotIn()]):
            reason = "uses and, or, not or in; write &, |, ~ with each side in parentheses"
        case ast.Subscript():
            reason = 'does not name a column; write for example calls["person"]'
        case _:
            reason = "cannot stand in a condition"
    raise QueryError(f"`{shown}` {reason}")
