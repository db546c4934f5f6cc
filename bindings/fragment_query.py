"""One fragment of a divided query, as a query over streams and partial results."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
from windjoin.durations import Duration
from windjoin.expressions import Alias, Column, Comparison, Constant, Expression
from windjoin.kinds import UNIT_STEPS
from windjoin.methods import greatest
from windjoin.query import Query
from windjoin.query_checks import output_name
from windjoin.query_making import join
from windjoin.row_windows import RowWindow
from windjoin.streams import Stream, stream

NEWEST = "newest"  # the column of partial results that has the time of their newest member


@dataclass(frozen=True, slots=True)
class Leaf:
    """A stream of the query, by number."""

    stream: int

    @property
    def members(self) -> frozenset[int]:
        """The streams whose rows are in it."""
        return frozenset((self.stream,))

    def name(self, query: Query) -> str:
        """What it is called as a stream."""
        return query.names[self.stream]


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial results of another fragment, over some streams."""

    of: str
    members: frozenset[int]

    def name(self, query: Query) -> str:
        """What it is called as a stream."""
        return self.of


Input = Leaf | Partial


def fragment_query(
    query: Query, inputs: Sequence[Input], schemas: Mapping[str, pa.Schema], last: bool
) -> Query:
    """The part of a query that puts ``inputs`` together; the last one gives the results."""
    if last and all(isinstance(one, Leaf) for one in inputs):
        return query
    return _Builder(query, inputs, schemas).build(last)


class _Builder:
    def __init__(
        self, query: Query, inputs: Sequence[Input], schemas: Mapping[str, pa.Schema]
    ) -> None:
        self.query = query
        self.inputs = inputs
        self.schemas = schemas
        self.members = frozenset().union(*(one.members for one in inputs))
        self.plain = all(not isinstance(s.window, Duration) for s in query.streams)
        units = {s.unit for s in query.streams}
        integers = all(pa.types.is_integer(self._time_type(s)) for s in query.streams)
        # times stay what they are where all are integers that count the same
        self.unit = next(iter(units)) if integers and len(units) == 1 else None
        self.cast = not integers or len(units) > 1
        self.streams = {
            member: made for one in inputs for made in [self._stream(one)] for member in one.members
        }

    def build(self, last: bool) -> Query:
        conditions = [self._here(c) for c in self.query.on if self._is_new(c)]
        conditions += list(self._windows())
        streams = [self.streams[min(one.members)] for one in self.inputs]
        names = self.query.names
        return join(
            *streams,
            on=conditions,
            select=list(self._results() if last else self._partial()),
            closed=self.query.closed,
            cross=True,
            exclude_self=[
                (names[a], names[b]) for a, b in self.query.exclude_self if self._here_alone(a, b)
            ],
        )

    def _here_alone(self, *members: int) -> bool:
        """Whether streams are read as they are: the numbers of their rows are known."""
        return all(Leaf(member) in self.inputs for member in members)

    # -- streams --------------------------------------------------------------------------

    def _time_type(self, of: Stream) -> Any:
        return self.schemas[of.name].field(of.time).type

    def _stream(self, one: Input) -> Stream:
        if isinstance(one, Leaf):
            return self.query.streams[one.stream]
        longest = max(
            (self.query.streams[member] for member in one.members), key=self._window_length
        )
        unit = self.unit if not self.cast else None
        return stream(one.of, time=NEWEST, window=longest.window, unit=unit)

    def _window_length(self, of: Stream) -> Any:
        assert not isinstance(of.window, RowWindow), "plan refuses windows of rows"
        return of.window if isinstance(of.window, int) else of.window.nanoseconds

    def _time(self, member: int) -> Expression:
        """The time of a member, where it is now, in a type that all members' times share."""
        own = self.query.streams[member]
        time: Expression = self._column(Column(own.name, own.time))
        if self.cast and pa.types.is_integer(self._time_type(own)):
            step = UNIT_STEPS[own.unit or "ns"]
            unit = next(u for u in ("s", "ms", "us", "ns") if step >= UNIT_STEPS[u])
            ratio = int(step / UNIT_STEPS[unit])
            time = (time if ratio == 1 else time * ratio).cast(f"timestamp[{unit}]")
        return time

    # -- conditions -----------------------------------------------------------------------

    def _is_new(self, condition: Expression) -> bool:
        """Whether a condition can be decided here and could not before."""
        numbers = {self.query.names.index(name) for name in condition.streams}
        inside = any(numbers <= one.members for one in self.inputs)
        return numbers <= self.members and not inside

    def _windows(self) -> Iterator[Expression]:
        """No input comes later than every member of the others lets it."""
        for one in self.inputs:
            if isinstance(one, Leaf):
                continue  # its window says so
            for member in sorted(one.members):
                for other in self.inputs:
                    if other is not one:
                        yield self._within(member, other)

    def _within(self, member: int, other: Input) -> Expression:
        newest = self._time(other.stream) if isinstance(other, Leaf) else Column(other.of, NEWEST)
        window: Any = self.query.streams[member].window
        strict = (
            self.query.closed == "right" and self._window_length(self.query.streams[member]) > 0
        )
        if not self.cast and isinstance(window, Duration):  # integers that count `unit`
            exactly = Fraction(window.nanoseconds, 10**9) / UNIT_STEPS[self.unit or "s"]
            strict = strict and exactly.denominator == 1
            window = int(exactly)
        later = newest - self._time(member)
        return Comparison("<" if strict else "<=", later, Constant(window))

    # -- columns --------------------------------------------------------------------------

    def _column(self, column: Column) -> Column:
        """Where a column of the query is found among the inputs."""
        member = self.query.names.index(column.stream)
        for one in self.inputs:
            if isinstance(one, Partial) and member in one.members:
                return Column(one.of, f"{column.stream}_{column.name}")
        return column

    def _here(self, expression: Expression) -> Expression:
        """An expression of the query over the inputs."""
        if isinstance(expression, Column):
            return self._column(expression)
        if not expression.parts:
            return expression
        changed: dict[str, Any] = {}
        for one in dataclasses.fields(expression):  # type: ignore[arg-type]
            value = getattr(expression, one.name)
            if isinstance(value, Expression):
                changed[one.name] = self._here(value)
            elif isinstance(value, tuple):
                changed[one.name] = tuple(
                    self._here(v) if isinstance(v, Expression) else v for v in value
                )
        return dataclasses.replace(expression, **changed)  # type: ignore[type-var]

    def _partial(self) -> Iterator[Expression]:
        """What the rest of the query needs of these members."""
        needed = {c.key: c for expression in self._later() for c in expression.columns()}
        for column in needed.values():
            if self.query.names.index(column.stream) in self.members:
                yield self._column(column).alias(f"{column.stream}_{column.name}")
        newest = [
            self._time(min(one.members)) if isinstance(one, Leaf) else Column(one.of, NEWEST)
            for one in self.inputs
        ]
        yield greatest(*newest).alias(NEWEST)

    def _later(self) -> Iterator[Expression]:
        for condition in self.query.on:
            if not {self.query.names.index(n) for n in condition.streams} <= self.members:
                yield condition
        yield from self._selected()
        for member in sorted(self.members):
            own = self.query.streams[member]
            yield Column(own.name, own.time)

    def _selected(self) -> list[Expression]:
        if self.query.select is not None:
            return list(self.query.select)
        return [Column(n, c) for n in self.query.names for c in self.schemas[n].names]

    def _results(self) -> Iterator[Expression]:
        for expression in self._selected():
            inner = expression.expression if isinstance(expression, Alias) else expression
            yield self._here(inner).alias(output_name(expression))
