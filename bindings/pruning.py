"""What of a table need not be read: columns nobody asks for, parts that can be in no result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.checking import check
from windjoin.conjunctions import atoms
from windjoin.datasets import Ends, FilePart
from windjoin.evaluate import holds
from windjoin.expressions import Column, Comparison, Constant, Expression
from windjoin.row_windows import counts_rows

Span = tuple[int, int] | None
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def needed_columns(bound: BoundQuery) -> list[set[str]]:
    """For each stream the columns that results, conditions and the clock are made of."""
    query = bound.query
    expressions = [*query.on, *(c for stream in query.streams for c in stream.conditions)]
    conditions = [column for expression in expressions for column in expression.columns()]
    return [
        {
            stream.time, *shown, *evaluated,
            *(c.name for c in conditions if c.stream == stream.name),
        }
        for stream, shown, evaluated in zip(
            query.streams, bound.selected, bound.evaluated, strict=True
        )
    ]  # fmt: skip


def reachable(bound: BoundQuery, spans: Sequence[Span], stream: int) -> tuple[int, int] | None:
    """The times within which rows of a stream can meet rows of all others; None: at any time."""
    if not bound.query.sides.plain or counts_rows(bound.query):
        return None
    windows = [one.window for one in bound.spec.streams]
    first, last = -(2**63), 2**63
    for other, span in enumerate(spans):
        if other != stream and span is not None:
            first = max(first, span[0] - windows[stream])
            last = min(last, span[1] + windows[other])
    return first, last


def where_may_hold(bound: BoundQuery, stream: int, part: FilePart) -> bool:
    """Whether statistics leave open that rows of a part pass the ``where`` of their stream."""
    query = bound.query
    compared = [
        found
        for condition in query.streams[stream].conditions
        for one in atoms(condition)
        if (found := _compared(one)) is not None
    ]
    if not compared:
        return True
    ends = part.ends([column.name for column, _, _ in compared])
    return all(_may_hold(bound, ends, *one) for one in compared)


def _compared(condition: Expression) -> tuple[Column, str, Constant] | None:
    """A column compared with a constant."""
    if not isinstance(condition, Comparison) or condition.operator == "!=":
        return None
    left, right = condition.left, condition.right
    if isinstance(left, Column) and isinstance(right, Constant):
        return left, condition.operator, right
    if isinstance(left, Constant) and isinstance(right, Column):
        return right, MIRRORED[condition.operator], left
    return None


def _may_hold(
    bound: BoundQuery, ends: Ends, column: Column, operator: str, constant: Constant
) -> bool:
    """Of the least or greatest value it is asked what is asked of every row."""
    if column.name not in ends:
        return True
    least, greatest = ends[column.name]
    asked: list[tuple[Any, Any]] = []
    if operator in ("<", "<=", "=="):
        asked.append((least, "<=" if operator == "==" else operator))
    if operator in (">", ">=", "=="):
        asked.append((greatest, ">=" if operator == "==" else operator))
    return all(
        _holds(bound, value, Comparison(how, column, constant), column) for value, how in asked
    )


def _holds(bound: BoundQuery, value: Any, condition: Comparison, column: Column) -> bool:
    typed = check(condition, bound.schemas)
    kind = bound.schemas[column.stream].field(column.name).type
    kept, raised = holds(typed, lambda asked: pa.chunked_array([value.cast(kind)]))
    return bool(kept[0]) or raised is not None
