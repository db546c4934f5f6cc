"""Expressions meet schemas: every node gets its kind, or a `SchemaError` says what does not fit.

A text where a duration belongs becomes one: ``a["ts"] - b["ts"] <= "5s"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from windjoin.constants import constant_value, duration_value
from windjoin.durations import parse_duration
from windjoin.errors import QueryError, SchemaError, hint
from windjoin.expressions import (
    Alias,
    Between,
    Binary,
    Column,
    Comparison,
    Constant,
    Expression,
    Unary,
)
from windjoin.function_nodes import PairFunction, Parallel, Udf
from windjoin.instants import instant_value
from windjoin.kinds import (
    BOOL,
    FLOAT,
    INSTANTS,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NESTED,
    NULL,
    NUMBERS,
    Kind,
    kind_of,
)
from windjoin.layout import gatherable_type
from windjoin.methods import Coalesce, Extreme, Method

Schemas = Mapping[str, pa.Schema]


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """An expression whose kind is known, with its typed parts; ``value`` is a constant's."""

    node: Expression
    kind: Kind
    parts: tuple[Typed, ...] = ()
    value: Any = None

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams in it."""
        return self.node.streams


def check(expression: Expression, schemas: Schemas) -> Typed:
    """Type ``expression`` over the columns of its streams."""
    if isinstance(expression, Constant):
        kind, value = constant_value(expression.value)
        return Typed(expression, kind, value=value)
    if isinstance(expression, Column):
        return Typed(expression, kind_of(column_type(expression, schemas)))
    parts = tuple(check(part, schemas) for part in expression.parts)
    if isinstance(expression, Parallel):
        return Typed(expression, NESTED, parts)
    if isinstance(expression, PairFunction):
        from windjoin.pairs import definition, measured_type

        left, right = (
            measured_type(part, lambda column: column_type(column, schemas))
            for part in expression.parts
        )
        return Typed(expression, definition(expression).check(expression, left, right), parts)
    if isinstance(expression, Alias):
        return Typed(expression, parts[0].kind, parts)
    parts = tuple(_read_beside(expression, part, parts) for part in parts)
    return Typed(expression, _RULES[type(expression)](Context(expression, parts, schemas)), parts)


def check_condition(expression: Expression, schemas: Schemas) -> Typed:
    """Type a condition: it must be true or false."""
    typed = check(expression, schemas)
    if typed.kind.family not in ("bool", "null") and isinstance(expression, Udf):
        raise SchemaError(
            f"`{expression!r}` is not a condition: the function returns {typed.kind}; return True"
            " or False, or compare what it returns, for example with <="
        )
    if typed.kind.family not in ("bool", "null"):
        raise SchemaError(
            f"`{expression!r}` is not a condition: {_described(typed, schemas)};"
            " compare it with something"
        )
    return typed


def column_type(column: Column, schemas: Schemas) -> pa.DataType:
    """The Arrow type of a column; it must exist, once."""
    schema = schemas[column.stream]
    found = schema.get_all_field_indices(column.name)
    if len(found) == 1:
        arrow: pa.DataType = schema.field(found[0]).type
        return arrow
    if found:
        raise SchemaError(
            f"stream {column.stream!r} has {len(found)} columns called {column.name!r};"
            " rename all but one"
        )
    raise SchemaError(
        f"stream {column.stream!r} has no column {column.name!r}{hint(column.name, schema.names)}"
    )


def check_bound(stream: str, schema: pa.Schema, bound: Mapping[str, pa.DataType]) -> None:
    """Refuse rows of a stream that lack a column the query was bound to, or have another type."""
    for name, type_ in bound.items():
        given = column_type(Column(stream, name), {stream: schema})
        if given != type_ and gatherable_type(given) != type_:
            raise SchemaError(
                f"stream {stream!r}: column {name!r} is {given} but the query was"
                f" bound to {type_}; cast it, or bind the query to this schema"
            )


@dataclass(frozen=True, slots=True)
class Context:
    """One node under check, for rules and for their messages."""

    node: Any
    parts: tuple[Typed, ...]
    schemas: Schemas

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of its parts."""
        return tuple(part.kind for part in self.parts)

    def refuse(self, what: str, remedy: str = "") -> SchemaError:
        """An error that says what each part is, and what would be right."""
        described = ", ".join(_described(part, self.schemas) for part in self.parts)
        return SchemaError(f"`{self.node!r}`: {what}: {described}{remedy and f'; {remedy}'}")


def _described(typed: Typed, schemas: Schemas) -> str:
    node = typed.node
    if isinstance(node, Column):
        arrow = column_type(node, schemas)
        return f"column {node.name!r} of stream {node.stream!r} is {arrow}"
    return f"{node!r} is {typed.kind}"


def _read_beside(node: Expression, part: Typed, parts: tuple[Typed, ...]) -> Typed:
    """A constant as it is to be read beside the other parts of a node."""
    if isinstance(node, Udf) or not isinstance(part.node, Constant):
        return part
    families = {one.kind.family for one in parts}
    calculates = isinstance(node, Binary) and node.operator not in ("&", "|")
    if calculates and families & {*INSTANTS, "time"}:
        return _as_duration(part, node)
    for other in parts[:1] if isinstance(node, Method) else parts:
        if other.kind != part.kind or other.kind.family == "duration":
            part = beside(node, part, other.kind)
    return part


def beside(node: Expression, part: Typed, kind: Kind) -> Typed:
    """A constant beside a value of ``kind``: texts are read as durations or times where it is one,
    floats that are compared with decimals as they are written: 0.1 is 1/10.
    """
    calculates = isinstance(node, Binary)
    if part.kind.family == "text" and kind.family == "duration":
        return _as_duration(part, node)
    if part.kind.family == "text" and kind.family in INSTANTS and not calculates:
        try:
            own, value = instant_value(part.value, kind.zone)
        except QueryError as error:
            raise SchemaError(f"`{node!r}`: {error}") from None
        return Typed(part.node, own, value=value)
    if part.kind.family == "float" and kind.family == "decimal" and not calculates:
        own, value = constant_value(Decimal(repr(part.value)))
        return Typed(part.node, own, value=value)
    return part


def _as_duration(part: Typed, node: Expression) -> Typed:
    if part.kind.family != "text":
        return part
    try:
        kind, value = duration_value(part.value)
    except QueryError as error:
        raise SchemaError(f"`{node!r}`: {error}") from None
    return Typed(part.node, kind, value=value)


# -- one rule per node ----------------------------------------------------------------------


def _compare(context: Context) -> Kind:
    first, *others = context.kinds
    for other in others:
        check_comparable(context, first, other)
    return BOOL


def check_comparable(context: Context, left: Kind, right: Kind) -> None:
    """Refuse two kinds that cannot be compared, with words on ``context``."""
    families = {left.family, right.family}
    if "nested" in families:
        raise context.refuse(
            "nested columns cannot be compared", "compare a column of numbers, text or times"
        )
    if "null" in families or families <= NUMBERS:
        return
    if families <= INSTANTS:
        if (left.zone is None) != (right.zone is None):
            raise context.refuse(
                "times with and without a zone cannot be compared",
                "give both a zone or neither (cast one column, or give the datetime a tzinfo)",
            )
        return
    if len(families) > 1:
        raise context.refuse("these cannot be compared", _remedy(families, context.parts))


def _remedy(families: set[Any], parts: tuple[Typed, ...]) -> str:
    if "text" in families and families & NUMBERS and any(map(_is_length, parts)):
        return "of plain numbers write the length in their own unit, such as 30"
    for known, remedy in _REMEDIES.items():
        if families <= known:
            return remedy
    return "cast one of them to the type of the other"


def _is_length(part: Typed) -> bool:
    """Whether it is a constant text such as "30s"."""
    try:
        return isinstance(part.node, Constant) and bool(parse_duration(part.node.value))
    except QueryError:
        return False


_REMEDIES: dict[frozenset[Any], str] = {
    frozenset(("text", *NUMBERS)): "cast the text column to numbers, or the numbers to text",
    frozenset(("bool", *NUMBERS)): "compare a boolean with True or False, or cast it to an integer",
    frozenset(("text", "binary")): "cast one to the type of the other; text never equals bytes",
    frozenset(("duration", *NUMBERS)): 'write a duration such as "5s" or a timedelta',
    frozenset((*INSTANTS, "text")): "write a datetime or date, or cast the text column to one",
    frozenset((*INSTANTS, *NUMBERS)): "cast the integers to timestamps, or the times to integers",
    frozenset((*INSTANTS, "duration")): "compare the difference of two times with a duration",
}


def _logic(context: Context) -> Kind:
    for kind in context.kinds:
        if kind.family not in ("bool", "null"):
            raise context.refuse("& | ~ join conditions, each true or false", "compare each side")
    return BOOL


def _unary(context: Context) -> Kind:
    (kind,) = context.kinds
    operator = context.node.operator
    if operator == "is_null":
        return BOOL
    if operator == "~":
        return _logic(context)
    if kind.family == "null":
        return NULL
    if kind.family not in NUMBERS and kind.family != "duration":
        raise context.refuse(f"{operator} is for numbers and durations")
    if not kind.exact:
        return kind
    if operator == "abs":
        largest = max(-kind.low, kind.high)
        return kind if kind.low >= 0 else _computed(replace(kind, low=0, high=largest))
    return _computed(replace(kind, low=-kind.high, high=-kind.low))


def _computed(kind: Kind) -> Kind:
    """Integers and times computed from others are int64: a larger value is an error at its row."""
    if kind.family == "decimal":
        return kind
    return replace(kind, low=max(kind.low, INT64_MIN), high=min(kind.high, INT64_MAX))


def _binary(context: Context) -> Kind:
    operator = context.node.operator
    if operator in ("&", "|"):
        return _logic(context)
    left, right = context.kinds
    families = {left.family, right.family}
    if "nested" in families:
        raise context.refuse("nested columns cannot be calculated with")
    if "null" in families:
        return NULL
    if families <= NUMBERS:
        return _number_arithmetic(operator, left, right)
    kind = _time_arithmetic(operator, left, right)
    if kind is None:
        raise context.refuse(
            f"{operator} has no meaning here",
            "arithmetic is for numbers, differences of times, and durations",
        )
    if families <= INSTANTS and (left.zone is None) != (right.zone is None):
        raise context.refuse(
            "times with and without a zone cannot be subtracted", "give both a zone or neither"
        )
    return kind


def _number_arithmetic(operator: str, left: Kind, right: Kind) -> Kind:
    if operator == "/" or "float" in (left.family, right.family):
        return FLOAT
    if operator == "//" or left.family == right.family == "integer":
        return INTEGER
    if operator == "*":
        corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        return Kind("decimal", left.step * right.step, min(corners), max(corners))
    step = min(left.step, right.step)
    left, right = left.counted_in(step), right.counted_in(step)
    if operator == "%":
        largest = max(abs(right.low), abs(right.high))
        return Kind("decimal", step, -largest, largest)
    if operator == "-":
        return Kind("decimal", step, left.low - right.high, left.high - right.low)
    return Kind("decimal", step, left.low + right.low, left.high + right.high)


def _time_arithmetic(operator: str, left: Kind, right: Kind) -> Kind | None:
    step = min(left.step, right.step)
    families = (left.family, right.family)
    if operator == "-" and (INSTANTS.issuperset(families) or families == ("time", "time")):
        return Kind("duration", step)
    if families == ("duration", "duration"):
        if operator in ("+", "-", "%"):
            return Kind("duration", step)
        return {"/": FLOAT, "//": INTEGER}.get(operator)
    if operator in ("+", "-") and left.family in INSTANTS and right.family == "duration":
        return Kind("timestamp", step, zone=left.zone)
    if operator == "+" and left.family == "duration" and right.family in INSTANTS:
        return Kind("timestamp", step, zone=right.zone)
    if operator in ("*", "//") and families == ("duration", "integer"):
        return Kind("duration", left.step)
    if operator == "*" and families == ("integer", "duration"):
        return Kind("duration", right.step)
    return None


def _udf(context: Context) -> Kind:
    for part in context.parts:
        if part.kind.family not in ("integer", "float", "bool", "null"):
            raise SchemaError(
                f"`{context.node!r}`: {_described(part, context.schemas)}; a user function takes"
                " integers, floats and booleans only"
            )
    if any(kind.family == "null" for kind in context.kinds):
        return BOOL  # and null everywhere
    from windjoin.functions import kind_returned

    return kind_returned(context.node, context.kinds)


def _method(context: Context) -> Kind:
    from windjoin.method_rules import check_method

    return check_method(context)


def _extreme(context: Context) -> Kind:
    from windjoin.method_rules import check_extreme

    return check_extreme(context)


def _coalesce(context: Context) -> Kind:
    from windjoin.method_rules import check_coalesce

    return check_coalesce(context)


_RULES: dict[type[Expression], Callable[[Context], Kind]] = {
    Comparison: _compare,
    Between: _compare,
    Binary: _binary,
    Unary: _unary,
    Udf: _udf,
    Method: _method,
    Coalesce: _coalesce,
    Extreme: _extreme,
}
