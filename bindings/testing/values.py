"""Expressions on single rows, as plain Python: integers and fractions exactly, floats as doubles.

Times and durations are integers of nanoseconds, decimals are fractions, null and NaN are None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from windjoin.arrays import as_array
from windjoin.checking import Typed
from windjoin.columns import load
from windjoin.errors import FunctionError
from windjoin.expressions import Alias, Between, Binary, Column, Comparison, Constant, Unary
from windjoin.function_nodes import PairFunction, Parallel, Udf
from windjoin.kinds import UNIT_STEPS, Kind, arrow_type
from windjoin.method_rules import evaluate_method
from windjoin.methods import Coalesce, Method
from windjoin.signatures import name_of
from windjoin.testing.measures import measure

Row = Mapping[str, Any]  # plain values by column
Rows = Mapping[str, Row]  # of one combination, by stream
NANOSECOND = UNIT_STEPS["ns"]
TIMES = ("date", "time", "timestamp", "duration")
MOST_DIGITS = 80
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
}
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


# -- from Arrow, and back -------------------------------------------------------------------


def plain(scalar: Any) -> Any:
    """What an Arrow scalar says.

    >>> plain(pa.scalar(5, pa.timestamp("ms"))), plain(pa.scalar([1, None]))
    (5000000, [1, None])
    """
    if not scalar.is_valid:
        return None
    arrow = scalar.type
    if pat.is_dictionary(arrow) or isinstance(arrow, pa.BaseExtensionType):
        return plain(scalar.value)
    if pat.is_timestamp(arrow) or pat.is_duration(arrow) or pat.is_time(arrow):
        return scalar.value * _nanoseconds(UNIT_STEPS[arrow.unit])
    if pat.is_date(arrow):
        return scalar.value * _nanoseconds(UNIT_STEPS["d" if pat.is_date32(arrow) else "ms"])
    if pat.is_decimal(arrow):
        return Fraction(scalar.as_py())
    if pat.is_map(arrow):
        return [tuple(map(plain, pair.values())) for pair in scalar.values or ()]
    if pat.is_struct(arrow):
        return tuple(plain(value) for value in scalar.values())
    if pat.is_nested(arrow):
        return [plain(item) for item in scalar.values]
    return _known(scalar.as_py())


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as plain values."""
    columns = {name: [plain(v) for v in table.column(name)] for name in table.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_arrow(values: list[Any], arrow: pa.DataType) -> Any:
    """Plain values as an array of a type that something was computed in."""
    if pat.is_timestamp(arrow) or pat.is_duration(arrow):
        step = _nanoseconds(UNIT_STEPS[arrow.unit])
        counted = [None if value is None else value // step for value in values]
        return pa.array(counted, pa.int64()).view(arrow)
    if pat.is_date(arrow) or pat.is_time(arrow):
        unit = "d" if pat.is_date32(arrow) else "ms" if pat.is_date64(arrow) else arrow.unit
        step = _nanoseconds(UNIT_STEPS[unit])
        counted = [None if value is None else value // step for value in values]
        return pa.array(counted, pa.int32() if arrow.bit_width == 32 else pa.int64()).view(arrow)
    if pat.is_decimal(arrow):
        digits = Context(prec=MOST_DIGITS)
        scaled = [None if v is None else _decimal(v, arrow.scale, digits) for v in values]
        return pa.array(scaled, arrow)
    return pa.array(values, arrow)


def _decimal(value: Fraction, scale: int, digits: Context) -> Decimal:
    return digits.scaleb(Decimal(int(value * 10**scale)), -scale)


def _nanoseconds(step: Fraction) -> int:
    return int(step / NANOSECOND)


def _known(value: Any) -> Any:
    return None if value != value else value


# -- expressions ----------------------------------------------------------------------------


def value(typed: Typed, rows: Rows) -> Any:
    """The value of an expression for one row of each stream; None is null or unknown."""
    node = typed.node
    if isinstance(node, Column):
        return rows[node.stream][node.name]
    if isinstance(node, Constant):
        return _constant(typed)
    if isinstance(node, PairFunction):
        return measure(node.name, *(_measured(part, rows) for part in node.parts))
    if typed.kind.family == "null":
        return None
    values = [value(part, rows) for part in typed.parts]
    if isinstance(node, Alias):
        return values[0]
    if isinstance(node, Binary) and node.operator in ("&", "|"):
        return _logic(node.operator, values)
    if isinstance(node, Unary) and node.operator == "is_null":
        return values[0] is None
    if isinstance(node, Coalesce):
        found = next((one for one in values if one is not None), None)
        return found if found is None or typed.kind.family != "float" else float(found)
    if any(one is None for one in values):
        return None
    if isinstance(node, Method):
        return _by_method(typed, values)
    return _known(_computed(typed, values))


def _constant(typed: Typed) -> Any:
    if typed.kind.family in TIMES:
        return int(typed.value * typed.kind.step / NANOSECOND)
    if typed.kind.family == "decimal":
        return typed.value * typed.kind.step
    return typed.value


def _measured(part: Any, rows: Rows) -> Any:
    """A row of one side of a measure; a pair of list columns is a list of pairs."""
    if not isinstance(part, Parallel):
        return rows[part.stream][part.name]
    items, weights = (_measured(column, rows) for column in part.parts)
    if items is None or weights is None or len(items) != len(weights):
        return None
    return list(zip(items, weights, strict=True))


def _logic(operation: str, values: list[Any]) -> bool | None:
    """Three-valued: unknown where the known operands leave it open."""
    decisive = operation == "|"
    if any(one is decisive for one in values):
        return decisive
    return None if any(one is None for one in values) else not decisive


def _computed(typed: Typed, values: list[Any]) -> Any:
    node = typed.node
    if isinstance(node, Comparison):
        return COMPARE[node.operator](*values)
    if isinstance(node, Between):
        middle, low, high = values
        above = middle >= low if node.closed in ("both", "left") else middle > low
        return above and (middle <= high if node.closed in ("both", "right") else middle < high)
    if isinstance(node, Unary):
        if node.operator == "~":
            return not values[0]
        return abs(values[0]) if node.operator == "abs" else -values[0]
    if isinstance(node, Udf):
        return _called(node, typed.kind, values)
    assert isinstance(node, Binary)
    return _arithmetic(node.operator, typed, values)


def _by_method(typed: Typed, values: list[Any]) -> Any:
    """What Arrow makes of one value: of texts, casts and calendars."""
    if typed.node.name == "is_in":  # type: ignore[attr-defined]
        return any(values[0] == one for one in values[1:])
    parts = [
        load(as_arrow([one], arrow_type(part.kind)))
        for one, part in zip(values, typed.parts, strict=True)
    ]
    return plain(as_array(evaluate_method(typed, parts))[0])


def _arithmetic(operation: str, typed: Typed, values: list[Any]) -> Any:
    kinds = [part.kind for part in typed.parts]
    if typed.kind.family == "float":
        if kinds[0].family == "duration":
            step = _nanoseconds(min(kind.step for kind in kinds))
            values = [one // step for one in values]
        with np.errstate(all="ignore"):
            return float(FLOAT[operation](*map(_double, values)))
    if operation in ("//", "%") and not values[1]:
        return None
    if operation == "//" and kinds[0].family == "duration" and kinds[1].family == "integer":
        step = _nanoseconds(kinds[0].step)  # rounded down in the duration's own unit
        return values[0] // step // values[1] * step
    return EXACT[operation](*values)


def _double(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


def _called(node: Udf, kind: Kind, values: list[Any]) -> Any:
    arguments = [int(one) if isinstance(one, bool) else one for one in values]
    try:
        returned = node.function(*arguments)
    except Exception as error:
        told = f"{name_of(node.function)}({', '.join(map(repr, arguments))})"
        raise FunctionError(f"`{node!r}`: {told} raised {type(error).__name__}: {error}") from error
    return {"bool": bool, "integer": int, "float": float}[kind.family](returned)
