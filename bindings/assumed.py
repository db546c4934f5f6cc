"""Schemas for a query whose data nobody has seen: what its conditions let one assume."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.durations import Duration
from windjoin.expressions import Binary, Column, Constant, Expression, Unary
from windjoin.function_nodes import PairFunction, Parallel, Udf
from windjoin.methods import Method
from windjoin.query import Query

SETS = ("overlap", "jaccard", "containment", "cosine_sets")
VECTOR = pa.list_(pa.float32(), 64)
ITEMS = 8.0


def assumed_schemas(query: Query) -> dict[str, pa.Schema]:
    """A type for every column that a query names, the first one that its use asks for.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window="5s") for name in "ab")
    >>> q = wj.join(a, b, on=[a["k"] == b["k"], abs(a["x"] - b["x"]) <= 0.5])
    >>> assumed_schemas(q)["a"].field("x").type
    DataType(double)
    """
    types: dict[tuple[str, str], Any] = {}
    for stream in query.streams:
        plain = not isinstance(stream.window, Duration) or stream.unit is not None
        types[stream.name, stream.time] = pa.int64() if plain else pa.timestamp("us")
    expressions = [*query.on, *(c for s in query.streams for c in s.conditions)]
    expressions += list(query.select or ())
    for _ in range(2):  # what is compared with a column takes the type that it got
        for expression in expressions:
            for column, kind in _uses(expression, types):
                types.setdefault((column.stream, column.name), kind)
    for expression in expressions:
        for column in expression.columns():
            types.setdefault((column.stream, column.name), pa.int64())
    return {
        name: pa.schema([(column, kind) for (of, column), kind in types.items() if of == name])
        for name in query.names
    }


def assumed_widths(bound: BoundQuery) -> tuple[tuple[float, ...], ...]:
    """How long values of wide columns are taken to be."""
    usual = {"set": ITEMS, "weighted": ITEMS, "float32": 64.0, "float64": 64.0, "uint8": 1024.0}
    return tuple(tuple(usual[wide.form] for wide in stream.varlen) for stream in bound.spec.streams)


def _uses(
    expression: Expression, types: dict[tuple[str, str], Any]
) -> Iterator[tuple[Column, pa.DataType]]:
    """Columns with the types in which an expression can take them."""
    parts = expression.parts
    if isinstance(expression, PairFunction):
        yield from _measured(expression)
        return
    asked = _asked(expression, types)
    for part in parts:
        if asked is not None and isinstance(part, Column):
            yield part, asked
        yield from _uses(part, types)


def _asked(expression: Expression, types: dict[tuple[str, str], Any]) -> Any:
    if isinstance(expression, Udf):
        return pa.float64()
    if isinstance(expression, Unary):
        return {"~": pa.bool_(), "is_null": None}.get(expression.operator, pa.float64())
    if isinstance(expression, Method):
        return {"str": pa.string(), "dt": pa.timestamp("us")}.get(expression.name[:3].strip("."))
    for part in expression.parts:
        if isinstance(part, Constant):
            found = _of_constant(part.value)
            if found is not None:
                return found
        if isinstance(part, Column) and (part.stream, part.name) in types:
            return types[part.stream, part.name]
    arithmetic = isinstance(expression, Binary) and expression.operator not in "&|"
    return pa.float64() if arithmetic else None


def _of_constant(value: Any) -> Any:
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, float):
        return pa.float64()
    return pa.string() if isinstance(value, str) else None


def _measured(measure: PairFunction) -> Iterator[tuple[Column, pa.DataType]]:
    for part in measure.parts:
        if isinstance(part, Parallel):
            yield part.items, pa.list_(pa.int64())
            yield part.weights, pa.list_(pa.float64())
        elif isinstance(part, Column):
            if measure.name in SETS:
                yield part, pa.list_(pa.int64())
            elif measure.name in ("mean_abs_diff", "hamming", "hamming_bits"):
                yield part, pa.binary(1024)
            else:
                yield part, VECTOR
