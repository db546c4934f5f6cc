"""A case: data and a query, once for the oracle and once as the program a user would write.

The program is text: what a failure prints is what was run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

import pyarrow as pa

from tests.oracle import TIME, Advance, Apply, Column, Event, Expression, Literal, Push, Query, Row
from tests.values import Kind

ROW = "row"  # every stream carries its row numbers, so that result rows can be recognised
HEADER = """\
import datetime
import windjoin as wj
from tests.functions import *
"""


@dataclass(frozen=True, slots=True)
class StreamCase:
    """One stream: its name, its options as source text, its columns and its rows as stored."""

    name: str
    options: dict[str, str]  # window and unit, as a user writes them
    kinds: dict[str, Kind]  # by column, the event time among them
    stored: list[dict[str, Any]]

    def rows(self) -> list[Row]:
        """The rows as the oracle knows them."""
        return [
            {name: kind.meaning(row[name]) for name, kind in self.kinds.items()}
            for row in self.stored
        ]

    def table(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Rows ``start`` to ``stop`` as an Arrow table of their own, with row numbers."""
        rows = self.stored[start:stop]
        arrays = {n: kind.array([row[n] for row in rows]) for n, kind in self.kinds.items()}
        arrays[ROW] = pa.array(range(start, start + len(rows)), type=pa.int64())
        return pa.table(arrays)


class Printed:
    """Hypothesis shows the text of ``repr`` instead of the fields of a dataclass."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(frozen=True, slots=True)
class Case(Printed):
    """A query over drawn data."""

    streams: tuple[StreamCase, ...]
    query: Query

    @property
    def names(self) -> list[str]:
        return [stream.name for stream in self.streams]

    def rows(self) -> list[list[Row]]:
        return [stream.rows() for stream in self.streams]

    def tables(self) -> dict[str, pa.Table]:
        return {stream.name: stream.table() for stream in self.streams}

    def source(self) -> str:
        """The program that builds the query, as a user would write it."""
        lines = [_stream_source(self, number) for number in range(len(self.streams))]
        predicates = "".join(f"    {render(p, self.names)},\n" for p in self.query.predicates)
        apart = [[self.names[left], self.names[right]] for left, right in self.query.distinct]
        options = f", exclude_self={apart}" if apart else ""
        for option in ("keep", "exists", "missing"):
            numbers = getattr(self.query, option)
            names = ", ".join(self.names[stream] for stream in numbers)
            options += f", {option}=[{names}]" if numbers else ""
        options += ", cross=True" if self.query.exists or self.query.missing else ""
        lines.append(
            f"query = wj.join({', '.join(self.names)}, on=[\n{predicates}],"
            f" closed={self.query.closed!r}{options})"
        )
        return HEADER + "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        data = "\n".join(_rows_text(stream) for stream in self.streams)
        return f"\n{self.source()}\n{data}\n"


def tiny(
    predicates: Sequence[Expression],
    *columns: dict[str, tuple[Kind, list[Any]]],
    windows: Sequence[int] | None = None,
    options: dict[str, str] | None = None,
    closed: OneOf["both", "right"] = "both",
) -> Case:
    """A hand-made case: per stream its columns with their stored values, the time among them."""
    windows = windows or [0] * len(columns)
    streams = tuple(
        StreamCase(
            f"s{number}",
            {"window": repr(window), **(options or {})},
            {name: kind for name, (kind, _) in given.items()},
            [
                dict(zip(given, row, strict=True))
                for row in zip(*(values for _, values in given.values()), strict=True)
            ],
        )
        for number, (window, given) in enumerate(zip(windows, columns, strict=True))
    )
    query = Query(tuple(windows), tuple(predicates), (None,) * len(columns), closed)
    return Case(streams, query)


@dataclass(frozen=True, slots=True)
class Step:
    """Rows ``start`` to ``stop`` of a stream pushed, or, with ``time``, a promise about it."""

    stream: int
    start: int = 0
    stop: int = 0
    time: int | None = None  # as stored in the stream's time column


@dataclass(frozen=True, slots=True)
class SessionCase(Printed):
    """A case whose rows arrive step by step."""

    case: Case
    lateness: int  # in the oracle's unit
    lateness_source: str
    steps: tuple[Step, ...]

    def events(self) -> list[Event]:
        rows = self.case.rows()
        return [self._event(step, rows[step.stream]) for step in self.steps]

    def _event(self, step: Step, rows: list[Row]) -> Event:
        if step.time is None:
            return Push(step.stream, tuple(rows[step.start : step.stop]))
        meaning = self.case.streams[step.stream].kinds[TIME].meaning(step.time)
        return Advance(step.stream, meaning)

    def __repr__(self) -> str:
        names = self.case.names
        lines = [f"session = query.open(lateness={self.lateness_source})"]
        for step in self.steps:
            what = (
                f"push({names[step.stream]!r}, rows {step.start}:{step.stop})"
                if step.time is None
                else f"advance({names[step.stream]!r}, {step.time} as stored)"
            )
            lines.append(f"session.{what}")
        return f"{self.case!r}\n" + "\n".join(lines) + "\n"


def render(expression: Expression, names: Sequence[str]) -> str:
    """An expression as source text."""
    match expression:
        case Column(stream, name):
            return f"{names[stream]}[{name!r}]"
        case Literal(value, source):
            finite = not isinstance(value, float) or math.isfinite(value)
            return source or (repr(value) if finite else f"float('{value}')")
    return _render_call(expression, [render(operand, names) for operand in expression.operands])


def _render_call(expression: Apply, operands: list[str]) -> str:
    match expression.operation:
        case "udf":
            assert expression.function is not None
            return f"wj.udf({', '.join([expression.function.__name__, *operands])})"
        case "abs":
            return f"abs({operands[0]})"
        case "is_null":
            return f"({operands[0]}).is_null()"
        case "both" | "left" | "right" | "neither" as closed:
            return f"({operands[0]}).between({operands[1]}, {operands[2]}, closed={closed!r})"
        case "~":
            return f"~({operands[0]})"
        case "neg":
            return f"-({operands[0]})"
    left, right = (f"({o})" if " " in o else o for o in operands)
    return f"{left} {expression.operation} {right}"


def _stream_source(case: Case, number: int) -> str:
    stream, condition = case.streams[number], case.query.filters[number]
    options = {"time": repr(TIME), **stream.options}
    if condition is not None:
        options["where"] = f"lambda {stream.name}: {render(condition, case.names)}"
    arguments = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"{stream.name} = wj.stream({stream.name!r}, {arguments})"


def _rows_text(stream: StreamCase) -> str:
    types = ", ".join(f"{name}: {kind.type}" for name, kind in stream.kinds.items())
    rows = "".join(f"    {n}: {list(row.values())}\n" for n, row in enumerate(stream.stored))
    return f"{stream.name} ({types})\n{rows}"
