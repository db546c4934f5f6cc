"""The oracle's join once more, over NumPy arrays, for cases of hundreds of rows.

Held against the plain oracle on small cases.  Integers must be small (their results below 2**53):
NumPy's integers wrap and meet doubles as doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.oracle import (
    OPERATIONS,
    TIME,
    Apply,
    Column,
    Expression,
    Literal,
    Query,
    Row,
    streams_of,
)

BLOCK = 1 << 18  # combinations looked at together
MOST_PARTIAL = 1 << 18


class TooLarge(Exception):
    """The case has more partial combinations than this oracle holds."""


class Vector(NamedTuple):
    """Values and which of them are known; unknown ones are arbitrary."""

    values: NDArray[Any]
    known: NDArray[np.bool_]


Streams = Sequence[Mapping[str, Vector]]


def vectors(rows: list[Row], names: Sequence[str]) -> dict[str, Vector]:
    """The columns of a stream as vectors; NaN is not known."""
    return {name: _vector([row[name] for row in rows]) for name in names}


def _vector(column: list[Any]) -> Vector:
    known = np.array([value is not None for value in column], np.bool_)
    filler = next((value for value in column if value is not None), 0)
    plain = isinstance(filler, (bool, int, float, str))  # NumPy's bytes lose trailing zeros
    values = [filler if value is None else value for value in column]
    return _without_nan(np.array(values, None if plain else object), known)


def _without_nan(values: NDArray[Any], known: NDArray[np.bool_]) -> Vector:
    return Vector(values, known & (values == values))


def evaluate(expression: Expression, streams: Streams, rows: Mapping[int, Any]) -> Vector:
    """The values of an expression for many combinations; ``rows`` holds row numbers by stream."""
    match expression:
        case Column(stream, name):
            values, known = streams[stream][name]
            return Vector(values[rows[stream]], known[rows[stream]])
        case Literal(value):
            one = _vector([value])
            length = len(next(iter(rows.values())))
            return Vector(np.repeat(one.values, length), np.repeat(one.known, length))
    operands = [evaluate(operand, streams, rows) for operand in expression.operands]
    if expression.operation in "&|~":
        return _logic(expression.operation, operands)
    if expression.operation == "is_null":
        return Vector(~operands[0].known, np.ones_like(operands[0].known))
    return _apply(expression, operands)


def _apply(expression: Apply, operands: list[Vector]) -> Vector:
    known = np.logical_and.reduce([operand.known for operand in operands])
    if not known.any():  # a column without values has no type that others could meet
        return Vector(known, known)
    values = [operand.values for operand in operands]
    if expression.operation in ("//", "%"):
        known = known & (values[1] != 0)
        values[1] = np.where(known, values[1], 1)
    with np.errstate(all="ignore"):
        result = _function(expression, len(operands))(*values)
    return _without_nan(np.asarray(result), known)


def _function(expression: Apply, arity: int) -> Callable[..., Any]:
    if expression.function is not None:
        called = np.frompyfunc(expression.function, arity, 1)
        return lambda *values: np.array(called(*values).tolist())  # numbers may be compared
    if expression.operation in DIVISION:
        return DIVISION[expression.operation]
    if expression.operation in BETWEEN:
        above, below = BETWEEN[expression.operation]
        return lambda value, low, high: above(value, low) & below(value, high)
    return OPERATIONS[expression.operation]


DIVISION: dict[str, Callable[..., Any]] = {
    "/": lambda left, right: np.divide(left.astype(np.float64), right.astype(np.float64)),
    "//": np.floor_divide,
    "%": np.mod,
}
BETWEEN: dict[str, tuple[Any, Any]] = {
    "both": (np.greater_equal, np.less_equal),
    "left": (np.greater_equal, np.less),
    "right": (np.greater, np.less_equal),
    "neither": (np.greater, np.less),
}


def _logic(operation: str, operands: list[Vector]) -> Vector:
    truths = [operand.known & operand.values.astype(np.bool_) for operand in operands]
    lies = [operand.known & ~operand.values.astype(np.bool_) for operand in operands]
    if operation == "~":
        return Vector(lies[0], operands[0].known)
    if operation == "&":
        true, false = np.logical_and.reduce(truths), np.logical_or.reduce(lies)
    else:
        true, false = np.logical_or.reduce(truths), np.logical_and.reduce(lies)
    return Vector(true, true | false)


def _true(expression: Expression, streams: Streams, rows: Mapping[int, Any]) -> NDArray[np.bool_]:
    values, known = evaluate(expression, streams, rows)
    return known & values.astype(np.bool_)


def _inside(query: Query, streams: Streams, rows: Mapping[int, Any]) -> NDArray[np.bool_]:
    times = [streams[stream][TIME].values[rows[stream]] for stream in rows]
    newest = np.maximum.reduce(times)
    inside = np.ones(len(newest), np.bool_)
    for stream, time in zip(rows, times, strict=True):
        age, window = newest - time, query.windows[stream]
        inside &= (age <= window) if query.closed == "both" else (age < window) | (age == 0)
    return inside


def _kept(
    query: Query, streams: Streams, due: list[Expression], rows: dict[int, Any]
) -> dict[int, Any]:
    """The combinations of ``rows`` that hold so far; the newest stream is the last one."""
    keep = _inside(query, streams, rows)
    stream = len(rows) - 1
    for left, right in query.distinct:
        if max(left, right) == stream:
            keep &= rows[left] != rows[right]
    rows = {number: row[keep] for number, row in rows.items()}
    for predicate in due:
        keep = _true(predicate, streams, rows)
        rows = {number: row[keep] for number, row in rows.items()}
    return rows


def join(query: Query, streams: Streams) -> NDArray[np.int64]:
    """Row numbers of all results, one row per result and one column per stream."""
    due: list[list[Expression]] = [[] for _ in streams]
    for predicate in query.predicates:
        due[max(streams_of(predicate))].append(predicate)
    partial = _usable(query, streams, 0)[:, None]
    for stream in range(1, len(streams)):
        usable = _usable(query, streams, stream)
        size = max(1, BLOCK // max(len(usable), 1))
        longer = [np.empty((0, stream + 1), np.int64)]
        for start in range(0, len(partial), size):
            block = partial[start : start + size]
            rows = {n: np.repeat(block[:, n], len(usable)) for n in range(stream)}
            rows[stream] = np.tile(usable, len(block))
            longer.append(np.stack(list(_kept(query, streams, due[stream], rows).values()), 1))
            if sum(map(len, longer)) > MOST_PARTIAL:
                raise TooLarge(f"more than {MOST_PARTIAL} combinations of {stream + 1} streams")
        partial = np.concatenate(longer)
    return partial


def _usable(query: Query, streams: Streams, stream: int) -> NDArray[np.int64]:
    rows = np.flatnonzero(streams[stream][TIME].known)
    condition = query.filters[stream]
    return rows if condition is None else rows[_true(condition, streams, {stream: rows})]
