"""What a `JoinSpec` and its `Rows` say, as plain loops: the definition of what kernels compute.

With it, how a query is bound to its data is tested apart from how the join is computed.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from windjoin.kernels.spec import (
    Between,
    BytesColumn,
    Compare,
    Equal,
    Function,
    JoinSpec,
    Key,
    NotEqual,
    Opaque,
    Operand,
    Predicate,
    Rows,
)

from tests.oracle import Results

COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
}


def join(spec: JoinSpec, streams: Sequence[Rows]) -> Results:
    """All combinations of usable rows inside the windows for which every predicate holds."""
    due: list[list[Predicate]] = [[] for _ in streams]
    for predicate in spec.predicates:
        due[max(streams_of(predicate))].append(predicate)
    partial: list[tuple[int, ...]] = [()]
    for stream, rows in enumerate(streams):
        longer = [(*numbers, row) for numbers in partial for row in _usable(rows)]
        partial = [
            numbers
            for numbers in longer
            if _inside(spec, streams, numbers)
            and all(holds(predicate, streams, numbers) for predicate in due[stream])
            and all(
                numbers[left] != numbers[right]
                for left, right in spec.distinct
                if max(left, right) == stream
            )
        ]
    return Counter(partial)


def streams_of(predicate: Predicate) -> set[int]:
    """The streams a predicate reads."""
    match predicate:
        case Opaque(streams):
            return set(streams)
        case Function():
            return {operand.stream for operand in predicate.operands}
        case Equal() | NotEqual() | Compare() | Between():
            return {predicate.left.stream, predicate.right.stream}


def holds(predicate: Predicate, streams: Sequence[Rows], numbers: tuple[int, ...]) -> bool:
    """Whether a predicate is true for one row of each of its streams."""

    def value(operand: Operand | Key) -> Any:
        return _value(operand, streams[operand.stream], numbers[operand.stream])

    match predicate:
        case Equal(left, right):
            return bool(value(left) == value(right))
        case NotEqual(left, right):
            return bool(value(left) != value(right))
        case Compare(left, comparison, right):
            return bool(COMPARE[comparison](value(left), value(right)))
        case Between(left, right, low, high):
            return bool(low <= value(left) - value(right) <= high)
        case Function(function, operands, _, _, comparison, right):
            given = list(map(value, operands))
            found = function(*given[: predicate.arguments])
            if found is None:
                return False
            if comparison is None:
                return bool(found)
            return bool(COMPARE[comparison](found, given[-1] if right is None else right))
        case Opaque(read, evaluate):
            rows = {stream: np.array([numbers[stream]], np.int64) for stream in read}
            return bool(evaluate(rows)[0])


def _value(operand: Operand | Key, rows: Rows, number: int) -> Any:
    column = (
        rows.columns[operand.column] if isinstance(operand, Operand) else rows.keys[operand.key]
    )
    if isinstance(column, BytesColumn):
        return bytes(column.data[column.offsets[number] : column.offsets[number + 1]])
    return column[number].item()


def _usable(rows: Rows) -> list[int]:
    return [n for n in range(len(rows)) if rows.usable is None or rows.usable[n]]


def _inside(spec: JoinSpec, streams: Sequence[Rows], numbers: tuple[int, ...]) -> bool:
    times = [int(streams[stream].time[number]) for stream, number in enumerate(numbers)]
    return all(
        max(times) - time <= stream.window
        for time, stream in zip(times, spec.streams, strict=False)
    )
