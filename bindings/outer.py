"""What comes out of outer, semi and anti joins: rows in no result beside results, or instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery, Prepared
from windjoin.columns import Values
from windjoin.kernels.outer import NONE, Left, Lonely
from windjoin.kernels.spec import I64, Rows
from windjoin.kinds import FLOAT, INT64_MIN
from windjoin.measures import COUNT, COUNTS
from windjoin.output import Fetch
from windjoin.pyx.base.pieces import sorting_by


def whole_results(rows: Sequence[Rows], found: list[I64], lonely: Lonely) -> tuple[list[I64], Left]:
    """Of whole tables: the results that come out, and rows of kept streams that are in none.

    Of results that hosts found it is looked here which rows they have.
    """
    for stream in lonely.kept.streams if lonely.unasked else ():
        matched = np.zeros(len(rows[stream]), np.bool_)
        matched[found[stream]] = True
        lonely.look_at(stream, rows[stream], matched)
    if lonely.kept.form == "pairs":
        return found, lonely.left
    members = lonely.members if lonely.members is not None else np.empty(0, np.int64)
    none = np.broadcast_to(np.int64(NONE), len(members))
    given = [members if s in lonely.kept.streams else none for s in range(len(found))]
    return given, lonely.left


def numbers(bound: BoundQuery, found: Sequence[I64], left: Left) -> list[I64]:
    """Row numbers of all that comes out, for every stream whose rows do; -1 is none."""
    query = bound.query
    given = query.sides.given(len(query.streams))
    if not left:
        return [found[s] for s in given]
    alone = [(stream, rows, np.full(len(rows), NONE)) for stream, rows in left]
    return [
        np.concatenate([found[s], *(rows if s == stream else none for stream, rows, none in alone)])
        for s in given
    ]


def extended(bound: BoundQuery, found: Sequence[Any], left: Left) -> list[Any]:
    """Row numbers of all that comes out, for every stream, and scores; of rows alone there are
    none: -1, or NaN.
    """
    if not left:
        return list(found)
    streams = len(bound.query.streams)
    columns = [[column] for column in found]
    for stream, rows in left:
        for number, column in enumerate(columns):
            none = NONE if column[0].dtype == np.int64 else np.nan
            column.append(rows if number == stream else np.full(len(rows), none))
    assert len(columns) == streams + len(bound.spec.scores)
    return [np.concatenate(column) for column in columns]


def with_unmatched(bound: BoundQuery, results: pa.Table, fetch: Fetch, left: Left) -> pa.Table:
    """A table of results, and behind them rows that are in none."""
    apart = [unmatched(bound, fetch, stream, rows) for stream, rows in left if len(rows)]
    return pa.concat_tables([results, *apart]) if apart else results


def unmatched(bound: BoundQuery, fetch: Fetch, stream: int, rows: I64) -> pa.Table:
    """Rows of one stream as they come out, with nulls for all other streams."""
    names = bound.query.names

    def with_nulls(number: int, columns: list[str], asked: I64) -> list[Any]:
        if number == stream:
            return fetch(number, columns, asked)
        schema = bound.schemas[names[number]]
        return [pa.nulls(len(asked), schema.field(column).type) for column in columns]

    nowhere = np.zeros(len(rows), np.bool_)
    scores = [
        Values(COUNT, np.zeros(len(rows), np.int64), nowhere)
        if score.measure in COUNTS
        else Values(FLOAT, np.zeros(len(rows)), nowhere)
        for score in bound.spec.scores
    ]
    return bound.output.gather(with_nulls, [rows] * len(names), 1, scores)


def in_order(bound: BoundQuery, prepared: Sequence[Prepared], rows: Sequence[I64]) -> I64:
    """The order of what comes out: by time, then by members; none is before any row."""
    given = bound.query.sides.given(len(bound.query.streams))
    keys: list[I64] = []
    latest = np.full(len(rows[0]), INT64_MIN)
    for stream, members in zip(given, rows, strict=True):
        there = members >= 0
        time = np.full(len(members), INT64_MIN)
        time[there] = prepared[stream].rows.time[members[there]]
        np.maximum(latest, time, out=latest)
        keys += [time, members]
    return sorting_by([*reversed(keys), latest])
