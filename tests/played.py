"""What the kernels are told, played through by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
from hypothesis import strategies as st
from windjoin.binding import BoundQuery, Prepared
from windjoin.kernels.spec import (
    BytesColumn,
    Compare,
    Equal,
    Function,
    NotEqual,
    Opaque,
)
from windjoin.output import table_fetch

from .typed_values import TYPES, ColumnType, compare, families

FAMILIES = families()
NUMBERS = [name for name in FAMILIES["number"] if name != "null"]
OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
A, B = (wj.stream(name, time="t", window=10) for name in "ab")
X, Y = A["x"], B["y"]


def table(name: str, column: ColumnType, raw: list[Any]) -> pa.Table:
    """A table of a time column and one other, which starts inside its buffers."""
    array = column.array([None, *raw, None])[1:-1]
    return pa.table({"t": pa.array(range(len(raw)), pa.int64()), name: array})


def operand_values(prepared: list[Prepared], operand: Any, row: int) -> Any:
    return prepared[operand.stream].rows.columns[operand.column][row]


def key_value(prepared: list[Prepared], key: Any, row: int) -> Any:
    column = prepared[key.stream].rows.keys[key.key]
    if isinstance(column, BytesColumn):
        return column.data[column.offsets[row] : column.offsets[row + 1]].tobytes()
    return int(column[row])


def true_for(predicate: Any, prepared: list[Prepared], rows: dict[int, int]) -> bool:
    """Whether one predicate of the spec holds, read from its definition."""
    if isinstance(predicate, Function):
        values = [operand_values(prepared, o, rows[o.stream]) for o in predicate.operands]
        return bool(predicate.function(*values))
    sides = predicate.left, predicate.right
    if isinstance(predicate, (Equal, NotEqual)):
        assert sides[0].space == sides[1].space
        left, right = (key_value(prepared, k, rows[k.stream]) for k in sides)
        return (left == right) == isinstance(predicate, Equal)
    left, right = (operand_values(prepared, o, rows[o.stream]) for o in sides)
    if predicate.dtype == "int64":
        left, right = int(left), int(right)
    if isinstance(predicate, Compare):
        return bool(compare(predicate.operator, left, right))
    with np.errstate(all="ignore"):
        return bool(predicate.low <= left - right <= predicate.high)


def outcome(bound: BoundQuery, tables: list[pa.Table]) -> list[list[bool]]:
    """For every row of the first stream and every row of the second: do they join?"""
    prepared = [bound.prepare(number, data) for number, data in enumerate(tables)]
    for number, one in enumerate(prepared):
        spec = bound.spec.streams[number]
        assert [c.dtype.name for c in one.rows.columns] == list(spec.columns)
        forms = ["bytes" if isinstance(k, BytesColumn) else k.dtype.name for k in one.rows.keys]
        assert forms == list(spec.keys)
    usable = [
        np.ones(len(p.rows), bool) if p.rows.usable is None else p.rows.usable for p in prepared
    ]
    predicates = bound.spec_with(table_fetch(tables)).predicates
    possible = usable[0][:, None] & usable[1][None, :]
    for opaque in predicates:
        if isinstance(opaque, Opaque):
            pairs = np.indices(possible.shape).reshape(2, -1)
            mask = opaque.evaluate({0: pairs[0], 1: pairs[1]})
            assert mask.dtype == bool
            possible &= mask.reshape(possible.shape)
    simple = [p for p in predicates if not isinstance(p, Opaque)]
    return [
        [
            bool(possible[i, j]) and all(true_for(p, prepared, {0: i, 1: j}) for p in simple)
            for j in range(len(tables[1]))
        ]
        for i in range(len(tables[0]))
    ]


def joined(on: Any, tables: list[pa.Table], streams: Any = (A, B)) -> list[list[bool]]:
    bound = wj.join(*streams, on=on).bind(
        {s.name: t.schema for s, t in zip(streams, tables, strict=True)}
    )
    return outcome(bound, tables)


@st.composite
def two_columns(draw: Any, names: list[str]) -> tuple[list[ColumnType], list[list[Any]]]:
    types = [TYPES[draw(st.sampled_from(names))] for _ in range(2)]
    raw = [draw(st.lists(st.none() | st.sampled_from(t.pool), max_size=6)) for t in types]
    return types, raw


def meanings(types: list[ColumnType], raw: list[list[Any]]) -> tuple[list[Any], list[Any]]:
    left, right = ([t.means(v) for v in vs] for t, vs in zip(types, raw, strict=True))
    return left, right


def tables_of(types: list[ColumnType], raw: list[list[Any]]) -> list[pa.Table]:
    return [table("x", types[0], raw[0]), table("y", types[1], raw[1])]
