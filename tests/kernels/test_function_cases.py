"""A function that raises ends a join if it raises for a result, in every mode, and only then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st

from tests import functions
from tests.compare import assert_same_results
from tests.modes import MODES
from tests.oracle import Apply, Column, Expression, Literal, Query, Row, evaluate, join

Rows = list[tuple[int, int | None, int]]  # time, x, k
RAISED = "raised"


@dataclass(frozen=True)
class Case:
    """Streams of few rows, conditions, and the one among them that calls a function."""

    windows: tuple[int, ...]
    rows: tuple[Rows, ...]
    others: tuple[Expression, ...]
    calling: Expression

    @property
    def names(self) -> str:
        return "abc"[: len(self.rows)]

    def oracle_rows(self) -> list[list[Row]]:
        return [[{"ts": t, "x": x, "k": k} for t, x, k in rows] for rows in self.rows]

    def tables(self) -> dict[str, pa.Table]:
        return {
            name: pa.table(
                {
                    "ts": pa.array([row[0] for row in rows], pa.int64()),
                    "x": pa.array([row[1] for row in rows], pa.int64()),
                    "k": pa.array([row[2] for row in rows], pa.int64()),
                    "n": pa.array(range(len(rows)), pa.int64()),
                }
            )
            for name, rows in zip(self.names, self.rows, strict=True)
        }

    def query(self) -> Any:
        streams = [
            wj.stream(name, time="ts", window=window)
            for name, window in zip(self.names, self.windows, strict=True)
        ]
        on = [built(one, streams) for one in (*self.others, self.calling)]
        return wj.join(*streams, on=on, cross=True)

    def owed(self) -> tuple[Counter[tuple[int, ...]], bool]:
        """Results, and whether the function raises for a combination that is one but for it."""
        rows = self.oracle_rows()
        query = Query(self.windows, self.others, (None,) * len(rows))
        results: Counter[tuple[int, ...]] = Counter()
        raised = False
        for numbers in join(query, rows):
            members = [stream[number] for stream, number in zip(rows, numbers, strict=True)]
            truth = judged(self.calling, members)
            raised |= truth == RAISED
            if truth is True:
                results[numbers] += 1
        return results, raised


def judged(expression: Expression, rows: list[Row]) -> Any:
    """The value of a condition, where a call that raises has none."""
    assert isinstance(expression, Apply)
    if expression.operation in "|~":
        values = [judged(operand, rows) for operand in expression.operands]
        if expression.operation == "~":
            return values[0] if values[0] in (None, RAISED) else not values[0]
        if True in values:
            return True
        return RAISED if RAISED in values else None if None in values else False
    try:
        return evaluate(expression, rows)
    except (ValueError, KeyError, ZeroDivisionError, AssertionError):
        return RAISED


def built(expression: Expression, streams: list[Any]) -> Any:
    match expression:
        case Column(stream, name):
            return streams[stream][name]
        case Literal(value):
            return value
    operands = [built(operand, streams) for operand in expression.operands]
    match expression.operation:
        case "udf":
            assert expression.function is not None
            return wj.udf(expression.function, *operands)
        case "|":
            return operands[0] | operands[1]
        case "~":
            return ~operands[0]
        case "==":
            return operands[0] == operands[1]
        case _:
            return operands[0] <= operands[1]


def x(stream: int) -> Column:
    return Column(stream, "x")


def k(stream: int) -> Column:
    return Column(stream, "k")


def calls(function: Callable[..., Any], *streams: int) -> Apply:
    return Apply("udf", tuple(map(x, streams)), function)


PAIR = [
    calls(functions.picky, 0, 1),
    calls(functions.picky, 1, 0),
    Apply("~", (calls(functions.picky, 0, 1),)),
    Apply("|", (Apply("==", (k(0), k(1))), calls(functions.picky, 0, 1))),
    Apply("<=", (calls(functions.share, 0, 1), Literal(1))),
    Apply("==", (x(1), calls(functions.share, 1, 0))),
]
TRIPLE = [
    calls(functions.picky, 1, 2),
    calls(functions.picky_of_three, 0, 1, 2),
    Apply("|", (Apply("<=", (k(2), k(0))), calls(functions.picky_of_three, 2, 0, 1))),
]
LINKS = [Apply("==", (k(0), k(1))), Apply("<=", (x(0), x(1)))]
MORE_LINKS = [Apply("==", (k(1), k(2))), Apply("<=", (k(2), k(0)))]


@st.composite
def cases(draw: Any) -> Case:
    count = draw(st.integers(2, 3))
    row = st.tuples(st.integers(0, 12), st.none() | st.integers(0, 4), st.integers(0, 2))
    least = draw(st.sampled_from([0, 2, 5]))
    lists = st.lists(row, min_size=least, max_size=7)
    rows = tuple(sorted(draw(lists), key=lambda one: one[0]) for _ in range(count))
    windows = tuple(draw(st.sampled_from([20, 3, 1, 0])) for _ in range(count))
    possible = LINKS if count == 2 else [*LINKS, *MORE_LINKS]
    others = draw(st.lists(st.sampled_from(possible), max_size=2, unique=True))
    calling = draw(st.sampled_from(PAIR if count == 2 else [*PAIR, *TRIPLE]))
    return Case(windows, rows, tuple(others), calling)


@pytest.mark.parametrize("mode", MODES)
@given(case=cases())
def test_all_modes_raise_or_give_the_results(mode: str, case: Case) -> None:
    results, raised = case.owed()
    if not raised:
        assert_same_results(MODES[mode](case.query(), case.tables()), results)
        return
    with pytest.raises(wj.FunctionError, match=r"raised \w+Error"):
        list(MODES[mode](case.query(), case.tables()))
