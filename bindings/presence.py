"""Combinations of several streams for which others have rows that fit, or have none.

``exists=`` and ``missing=`` are answered by joins of the streams whose rows come out with those
that are asked about; of their results the members that come out matter, each combination once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from windjoin.binding import BoundQuery, Prepared
from windjoin.kernels.intake import Intake, Silencing
from windjoin.kernels.presence import Listener, PresenceJoin, SideJoin
from windjoin.kernels.spec import I64, Rows
from windjoin.kinds import INT64_MAX
from windjoin.output import Fetch
from windjoin.query import Query

Indices = Callable[[Query], dict[str, I64]]


def part(query: Query, streams: Sequence[int]) -> Query:
    """The inner join of some streams of a query, by all that is said of these."""
    place = {stream: number for number, stream in enumerate(streams)}
    names = {query.names[stream] for stream in streams}
    apart = [(place[a], place[b]) for a, b in query.exclude_self if {a, b} <= set(streams)]
    return Query(
        tuple(query.streams[stream] for stream in streams),
        tuple(condition for condition in query.on if set(condition.streams) <= names),
        None,
        query.closed,
        tuple(apart),
    )


def base(query: Query) -> tuple[int, ...]:
    """The streams of the join that says which combinations there are."""
    return tuple(sorted({*query.sides.given(len(query.streams)), *query.sides.exists}))


def against(query: Query) -> tuple[int, ...]:
    """The streams of the join whose results say which of them do not come out."""
    return tuple(sorted({*query.sides.given(len(query.streams)), *query.sides.missing}))


def combinations(query: Query, sizes: Sequence[int], indices: Indices) -> list[I64]:
    """Members of what comes out of whole tables, stream by stream; -1 of those asked about.

    ``indices`` joins whole tables; ``sizes``: their rows
    """
    given = query.sides.given(len(query.streams))
    of = [sizes[stream] for stream in given]
    found = _members(query, indices(part(query, base(query))))
    if query.sides.exists:
        found = [rows[np.unique(_codes([found], of)[0], return_index=True)[1]] for rows in found]
    if query.sides.missing:
        others = _members(query, indices(part(query, against(query))))
        own, fitting = _codes([found, others], of)
        alone = np.isin(own, fitting, invert=True)
        found = [rows[alone] for rows in found]
    none = np.full(len(found[0]), -1)
    rows = dict(zip(given, found, strict=True))
    return [rows.get(stream, none) for stream in range(len(query.streams))]


def _members(query: Query, found: dict[str, I64]) -> list[I64]:
    """Of results the rows of the streams that come out."""
    return [found[name] for name in query.given]


def _codes(tables: Sequence[Sequence[I64]], sizes: Sequence[int]) -> list[I64]:
    """A number for each combination, the same for the same."""
    counts = [len(rows[0]) for rows in tables]
    columns = [np.concatenate(parts) for parts in zip(*tables, strict=True)]
    codes, room = columns[0], max(sizes[0], 1)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if room * max(size, 1) > INT64_MAX:
            kinds, codes = np.unique(codes, return_inverse=True)
            room = max(len(kinds), 1)
        codes = codes * size + column
        room *= max(size, 1)
    return np.split(codes, np.cumsum(counts)[:-1])


# -- sessions -------------------------------------------------------------------------------


class SideJoins:
    """The joins of a session that are asked beside each other; ``fetch`` serves its payload."""

    def __init__(self, bound: BoundQuery, fetch: Fetch) -> None:
        query, self._fetch = bound.query, fetch
        self.bound = bound
        self.asked = [(base(query), query.sides.exists, False)]
        if query.sides.missing:
            self.asked.append((against(query), query.sides.missing, True))
        self.bounds = [self._bound(streams) for streams, _, _ in self.asked]

    def _bound(self, streams: tuple[int, ...]) -> BoundQuery:
        asked, schemas = part(self.bound.query, streams), self.bound.schemas
        own = {name: schemas[name] for name in asked.names}
        return BoundQuery(asked, own, self.bound.clock)

    def join(
        self, lateness: int, silence: Silencing | None, make: Callable[[BoundQuery, Any], Intake]
    ) -> PresenceJoin:
        """All of them as one; ``make`` makes a join of a bound query and its spec."""
        query = self.bound.query
        whole = PresenceJoin(
            self.bound.spec, query.sides.given(len(query.streams)), lateness, silence
        )
        for (streams, asked, opposing), bound in zip(self.asked, self.bounds, strict=True):
            own = make(bound, bound.spec_with(self._of(streams)))
            listener = Listener(whole, own.windows, opposing)
            own.listen(listener)
            whole.add(SideJoin(streams, asked, own), listener, opposing)
        whole.settled()
        return whole

    def _of(self, streams: tuple[int, ...]) -> Fetch:
        return lambda stream, names, rows: self._fetch(streams[stream], names, rows)

    def prepare(self, number: int, table: Any, first: int) -> Prepared:
        """Rows of a stream, ready for each of the joins that it is part of."""
        made: list[Prepared | None] = [
            bound.prepare(streams.index(number), table, first) if number in streams else None
            for (streams, _, _), bound in zip(self.asked, self.bounds, strict=True)
        ]
        one = next(prepared for prepared in made if prepared is not None)
        parts = [None if prepared is None else prepared.rows for prepared in made]
        return Prepared(Rows(one.rows.time, parts=parts), one.null_time)
