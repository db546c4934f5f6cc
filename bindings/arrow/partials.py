"""One hop as a join of two inputs: partial results, and the rows of one more stream.

A partial result over streams B has ``T = max t`` and ``D = min (t + W)``.  Row u of stream s
extends it iff ``T - W_s <= t_u <= D``.  As a join of two inputs: the partial result is a row with
time T and the longest window of B, the row of s has its own, and ``t_u <= D`` is one more
comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from windjoin.arrow.packing import more
from windjoin.arrow.plan import Plan
from windjoin.binding import Prepared
from windjoin.kernels.spec import (
    I64,
    Bools,
    Call,
    Compare,
    JoinSpec,
    Key,
    Opaque,
    Operand,
    Predicate,
    Rows,
    StreamSpec,
    Varlen,
)
from windjoin.output import Fetch

Place = tuple[int, int]  # stream, column or key
RAISED = "raised"  # what a function raised for a partial result; null: nothing


def partial_schema(plan: Plan, streams: tuple[int, ...]) -> pa.Schema:
    """Columns of partial results over ``streams``: ``<stream number>.<column>``, and RAISED."""
    fields = [
        pa.field(f"{stream}.{field.name}", field.type)
        for stream in streams
        for field in plan.schema(stream)
    ]
    return pa.schema([*fields, pa.field(RAISED, pa.string())] if plan.called else fields)


@dataclass
class PartialSide:
    """One of the two inputs: its streams, and what of their rows the predicates of the hop read."""

    streams: tuple[int, ...]
    columns: list[Place]
    keys: list[Place]
    varlen: list[Place]


class HopJoin:
    """The join of partial results over ``bound`` (input 0) with stream ``target`` (input 1)."""

    def __init__(self, plan: Plan, bound: tuple[int, ...], target: int) -> None:
        self.plan, self.query = plan, plan.bound
        self.target = target
        spec = self.query.spec
        reached = {*bound, target}
        self.positions = [
            number
            for number, predicate in enumerate(spec.predicates)
            if target in predicate.streams_read and predicate.streams_read <= reached
        ]
        last = len(reached) == len(spec.streams)
        self.scores = spec.scores if last else ()  # of results, not of parts of them
        self.sides = [self._side(bound), self._side((target,))]
        longest = max(spec.streams[s].window for s in bound)
        self.windows: tuple[int, ...] = (longest, spec.streams[target].window)

    def _side(self, streams: tuple[int, ...]) -> PartialSide:
        columns: dict[Place, None] = {}
        keys: dict[Place, None] = {}
        varlen: dict[Place, None] = {}
        for score in self.scores:
            for wide in (score.left, score.right):
                varlen[wide.stream, wide.column] = None
        for position in self.positions:
            predicate = self.query.spec.predicates[position]
            keys |= dict.fromkeys((key.stream, key.key) for key in predicate.keys_read)
            varlen |= dict.fromkeys((wide.stream, wide.column) for wide in predicate.varlen_read)
            columns |= dict.fromkeys((one.stream, one.column) for one in predicate.operands_read)
        return PartialSide(
            streams,
            [place for place in columns if place[0] in streams],
            [place for place in keys if place[0] in streams],
            [place for place in varlen if place[0] in streams],
        )

    # -- what a block needs ----------------------------------------------------------------

    def prepare(self, number: int, rows: pa.Table) -> Prepared:
        """Rows of an input; the last column is D, or the time of the added row."""
        side = self.sides[number]
        parts = {
            s: self.query.prepare(s, self._members(number, s, rows)).rows for s in side.streams
        }
        windows = self.query.spec.streams
        latest = np.maximum.reduce([part.time for part in parts.values()])
        until = np.minimum.reduce([more(p.time, windows[s].window) for s, p in parts.items()])
        columns = [parts[stream].columns[column] for stream, column in side.columns]
        columns.append(latest if number else until)
        keys = [parts[stream].keys[key] for stream, key in side.keys]
        varlen = [parts[stream].varlen[wide] for stream, wide in side.varlen]
        usable: Bools | None = None
        for part in parts.values():
            if part.usable is not None:
                usable = part.usable if usable is None else usable & part.usable
        return Prepared(Rows(latest, columns, keys, varlen, usable))

    def _members(self, number: int, stream: int, rows: pa.Table) -> pa.Table:
        names = self.plan.schema(stream).names
        if number:
            return rows
        return rows.select([f"{stream}.{name}" for name in names]).rename_columns(names)

    def spec_with(self, fetch: Fetch) -> JoinSpec:
        """The join of the two inputs; ``fetch`` serves their columns."""
        spec = self.query.spec_with(self.members_fetch(fetch))
        predicates = [self._moved(spec.predicates[position]) for position in self.positions]
        until = Operand(0, len(self.sides[0].columns))
        own = Operand(1, len(self.sides[1].columns))
        predicates.append(Compare(own, "<=", until, "int64", "the window of the earliest member"))
        names = " with ".join(spec.streams[s].name for s in self.sides[0].streams)
        return JoinSpec(
            (self._stream(0, names, spec), self._stream(1, spec.streams[self.target].name, spec)),
            tuple(predicates),
            scores=tuple(
                replace(score, left=self._varlen(score.left), right=self._varlen(score.right))
                for score in self.scores
            ),
        )

    def _stream(self, number: int, name: str, spec: JoinSpec) -> StreamSpec:
        side = self.sides[number]
        dtypes = tuple(spec.streams[s].columns[column] for s, column in side.columns)
        forms = tuple(spec.streams[s].keys[key] for s, key in side.keys)
        spaces = tuple(spec.streams[s].spaces[key] for s, key in side.keys)
        varlen = tuple(spec.streams[s].varlen[wide] for s, wide in side.varlen)
        return StreamSpec(name, self.windows[number], (*dtypes, "int64"), forms, spaces, varlen)

    def _number(self, stream: int) -> int:
        return int(stream == self.target)

    def _moved(self, predicate: Predicate) -> Predicate:
        """The predicate with its operands where they lie in the two inputs."""
        if isinstance(predicate, Opaque):
            pairs = _Members(self, predicate)
            return replace(predicate, streams=(0, 1), evaluate=pairs.mask, call=pairs.call)
        return predicate.moved(self._place)

    def _place(self, one: Operand | Key | Varlen) -> Operand | Key | Varlen:
        if isinstance(one, Key):
            return self._key(one)
        return self._varlen(one) if isinstance(one, Varlen) else self._operand(one)

    def _operand(self, operand: Operand) -> Operand:
        number = self._number(operand.stream)
        place = self.sides[number].columns.index((operand.stream, operand.column))
        return Operand(number, place)

    def _key(self, key: Key) -> Key:
        number = self._number(key.stream)
        return Key(number, self.sides[number].keys.index((key.stream, key.key)), key.space)

    def _varlen(self, wide: Varlen) -> Varlen:
        number = self._number(wide.stream)
        return Varlen(number, self.sides[number].varlen.index((wide.stream, wide.column)))

    def members_fetch(self, fetch: Fetch) -> Fetch:
        """Columns of the streams, served from the two inputs."""

        def members(stream: int, names: list[str], rows: I64) -> list[Any]:
            if stream == self.target:
                return fetch(1, names, rows)
            return fetch(0, [f"{stream}.{name}" for name in names], rows)

        return members

    def distinct(self) -> tuple[tuple[int, int], ...]:
        """Pairs with the new stream; the others were decided before."""
        reached = {*self.sides[0].streams, self.target}
        return tuple(
            pair
            for pair in self.query.query.exclude_self
            if self.target in pair and set(pair) <= reached
        )

    def called_with(self, predicate: int) -> tuple[int, ...]:
        """The streams of the query whose rows a function of `spec_with` gets."""
        return tuple(sorted(self.query.spec.predicates[self.positions[predicate]].streams_read))

    def raised_before(self, fetch: Fetch, rows: list[I64]) -> Any:
        """Per result what a function raised for its partial result, as text."""
        return fetch(0, [RAISED], rows[0])[0] if self.plan.called else None

    def members_rows(self, rows: list[I64]) -> list[I64]:
        """Row numbers by stream of the query, from row numbers by input."""
        return [rows[self._number(stream)] for stream in range(len(self.query.spec.streams))]


@dataclass(frozen=True, slots=True)
class _Members:
    """What an `Opaque` predicate asks of candidates, over the two inputs."""

    hop: HopJoin
    predicate: Opaque

    def mask(self, rows: Mapping[int, I64]) -> NDArray[Any]:
        """Which of them hold; 2 where a function raises."""
        return self.predicate.evaluate(self._members(rows))

    def call(self, rows: Mapping[int, I64]) -> Call:
        """The call of a function that raises for one combination."""
        return self.predicate.call(self._members(rows))

    def _members(self, rows: Mapping[int, I64]) -> dict[int, I64]:
        return {s: rows[int(s == self.hop.target)] for s in self.predicate.streams}
