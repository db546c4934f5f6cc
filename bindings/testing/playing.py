"""`play`: whole tables pushed as a stream, some rows at a time, in order or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from windjoin.binding import BoundQuery
from windjoin.errors import QueryError
from windjoin.inputs import as_table
from windjoin.query import Query
from windjoin.session import Session
from windjoin.session_state import Results
from windjoin.watermarks import length_ticks

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Step:
    """What was done to a session: rows pushed to a stream, or, without one, its end.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> from windjoin.testing import play
    >>> tables = {"a": {"t": [1], "k": [5]}, "b": {"t": [2], "k": [5]}}
    >>> [(step.number, step.stream, found.num_rows) for step, found in play(q, tables)]
    [(0, 'a', 0), (1, 'b', 1), (2, None, 0)]
    """

    number: int
    stream: str | None
    rows: pa.Table | None = None


def play(
    q: Query,
    tables: Mapping[str, Any],
    *,
    batch: int = 64,
    disorder: Any = 0,
    seed: int = 0,
    **options: Any,
) -> Iterator[tuple[Step, Results]]:
    """Push tables as a stream; (step, results) of every push, and of closing at the end.

    Rows of all streams come in order of time, ``batch`` at most of one stream in a push.
    ``disorder``: by how much time a row may be overtaken by later ones of its stream, a duration
    such as "2s", or an integer where times are; ``seed`` says which are.
    ``options``: of `Query.open`; ``lateness`` is ``disorder`` if not given, so that no row is late.

    >>> import windjoin as wj
    >>> from windjoin import testing
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> tables = {"a": {"t": [1, 9], "k": [5, 6]}, "b": {"t": [2, 3], "k": [5, 5]}}
    >>> for step, results in testing.play(q, tables, batch=1):
    ...     print(step.number, step.stream, len(results))
    0 a 0
    1 b 1
    2 b 1
    3 a 0
    4 None 0
    """
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise QueryError(f"batch={batch!r}: give how many rows come in a push, 1 or more")
    read = {name: as_table(tables[name], name) for name in q.names}
    bound = q.bind({name: table.schema for name, table in read.items()})
    ticks = length_ticks("disorder", bound.clock, disorder, bound.integer_times)
    arrivals = arrivals_of(bound, list(read.values()), ticks, np.random.default_rng(seed))
    order = in_turn(arrivals, lambda: batch)
    with q.open({n: t.schema for n, t in read.items()}, **{"lateness": disorder, **options}) as s:
        yield from push_all(s, {name: read[name] for name in q.names}, order)


def push_all(
    session: Session,
    tables: Mapping[str, pa.Table],
    order: Iterator[tuple[int, I64]],
    go_on: Callable[[Session], Session] | None = None,
) -> Iterator[tuple[Step, Results]]:
    """Push rows of tables by stream and row numbers, then close.

    ``go_on``: asked after every push for the session that takes the next one
    """
    names, number = list(tables), 0
    for stream, rows in order:
        table = tables[names[stream]].take(cast(Any, pa.array(rows)))
        yield Step(number, names[stream], table), session.push(names[stream], table)
        number += 1
        if go_on is not None:
            session = go_on(session)
    yield Step(number, None), session.close()


def arrivals_of(
    bound: BoundQuery, tables: list[pa.Table], disorder: int, random: Any
) -> list[tuple[I64, I64]]:
    """Of every stream, its rows in the order they arrive, and when.

    Streams that are one table (``exclude_self``) have their rows arrive in one order: sessions
    tell rows apart by that.
    """
    same: dict[int, int] = {}
    for one, other in bound.query.exclude_self:
        same.setdefault(other, same.get(one, one))
    found: list[tuple[I64, I64]] = []
    for stream, table in enumerate(tables):
        if stream in same:
            found.append(found[same[stream]])
            continue
        prepared = bound.prepare(stream, table)
        times = prepared.rows.time
        if prepared.null_time is not None:  # first of all
            known = times[~prepared.null_time]
            times = np.where(prepared.null_time, known.min() if len(known) else 0, times)
        delay = random.integers(0, disorder + 1, len(times)) if disorder else 0
        due = np.minimum(times, np.iinfo(np.int64).max - disorder) + delay
        order = np.argsort(due, kind="stable")
        found.append((order, due[order]))
    return found


def in_turn(arrivals: list[tuple[I64, I64]], most: Any) -> Iterator[tuple[int, I64]]:
    """(stream, rows) of every push: rows of the stream that comes first, ``most()`` at most."""
    streams = np.repeat(np.arange(len(arrivals)), [len(rows) for rows, _ in arrivals])
    rows = np.concatenate([rows for rows, _ in arrivals])
    order = np.argsort(np.concatenate([due for _, due in arrivals]), kind="stable")
    streams, rows = streams[order], rows[order]
    start = 0
    while start < len(rows):
        stop, limit = start + 1, start + most()
        while stop < min(len(rows), limit) and streams[stop] == streams[start]:
            stop += 1
        yield int(streams[start]), rows[start:stop]
        start = stop
