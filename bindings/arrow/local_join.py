"""All streams joined in one place: what `Hop` is to one hop, for a whole query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa
from windjoin.arrow.plan import Plan
from windjoin.binding import BoundQuery, Prepared
from windjoin.kernels.spec import I64, JoinSpec
from windjoin.output import Fetch


class JoinContext(Protocol):
    """What a block of rows needs to know of the join it is part of."""

    windows: tuple[int, ...]  # by input
    query: BoundQuery

    def prepare(self, number: int, rows: pa.Table) -> Prepared:
        """Rows of an input for the kernels."""

    def spec_with(self, fetch: Fetch) -> JoinSpec:
        """The join of the inputs; ``fetch(input, columns, rows)`` serves their columns."""

    def members_fetch(self, fetch: Fetch) -> Fetch:
        """The same served by stream of the query."""

    def members_rows(self, rows: list[I64]) -> list[I64]:
        """Row numbers by stream of the query."""

    def distinct(self) -> tuple[tuple[int, int], ...]:
        """Streams whose rows must differ, as far as they are decided here."""

    def called_with(self, predicate: int) -> tuple[int, ...]:
        """The streams of the query whose rows a function of `spec_with` gets."""

    def raised_before(self, fetch: Fetch, rows: list[I64]) -> Any:
        """Per result what a function raised for it elsewhere, as text; None: for none of them."""


class LocalJoin:
    """The join of all streams: inputs are streams."""

    def __init__(self, plan: Plan) -> None:
        self.query = plan.bound
        self.windows = tuple(stream.window for stream in self.query.spec.streams)

    def prepare(self, number: int, rows: pa.Table) -> Prepared:
        """Rows of an input for the kernels."""
        return self.query.prepare(number, rows)

    def spec_with(self, fetch: Fetch) -> JoinSpec:
        """The join, whose rows are told apart afterwards: numbers in a block mean nothing."""
        return replace(self.query.spec_with(fetch), distinct=())

    def members_fetch(self, fetch: Fetch) -> Fetch:
        """Inputs are streams."""
        return fetch

    def members_rows(self, rows: list[I64]) -> list[I64]:
        """Inputs are streams."""
        return rows

    def distinct(self) -> tuple[tuple[int, int], ...]:
        """All of them."""
        return tuple(self.query.query.exclude_self)

    def called_with(self, predicate: int) -> tuple[int, ...]:
        """Inputs are streams."""
        return tuple(sorted(self.query.spec.predicates[predicate].streams_read))

    def raised_before(self, fetch: Fetch, rows: list[I64]) -> Any:
        """Nothing was done before."""
        return None


def gathered(
    joined: JoinContext, query: BoundQuery, fetch: Fetch, rows: list[I64], scores: list[Any]
) -> pa.Table:
    """The result table of a query for row numbers by input, and the scores of these results."""
    members = joined.members_rows(rows)
    return query.gather_with(joined.members_fetch(fetch), members, scores=scores)
