"""`expected`: the answer to any query on small tables, by plain loops from its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.checking import Typed, check
from windjoin.durations import NANOSECONDS, Duration
from windjoin.function_nodes import PairFunction
from windjoin.inputs import as_table
from windjoin.layout import gatherable
from windjoin.output import plain_column
from windjoin.query import Query
from windjoin.row_windows import RowWindow
from windjoin.streams import Stream
from windjoin.testing.values import Row, as_arrow, plain_rows, value

Members = tuple[int | None, ...]  # a row of each stream; None: of this stream none
LARGEST_FIRST = (
    "overlap", "jaccard", "containment", "cosine_sets", "inner_product", "cosine", "dot",
)  # fmt: skip


def expected(q: Query, tables: Mapping[str, Any]) -> pa.Table:
    """What ``q.run(tables)`` has to give, in any order: slow, and right.

    Every combination of rows is asked whether it is a result, by plain Python loops that share
    nothing with the kernels.  For tables of some dozens of rows.

    >>> import windjoin as wj
    >>> from windjoin import testing
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["x"] < b["x"])
    >>> tables = {"a": {"t": [1, 2], "x": [5, 9]}, "b": {"t": [3], "x": [7]}}
    >>> testing.expected(q, tables).to_pylist()
    [{'a_t': 1, 'a_x': 5, 'b_t': 3, 'b_x': 7}]
    """
    read = {name: gatherable(as_table(table, name)) for name, table in tables.items()}
    bound = q.bind({name: table.schema for name, table in read.items()})
    definition = Definition(bound, [plain_rows(read[name]) for name in q.names])
    results = list(definition.results())
    columns: list[Any] = []
    for item in bound.output.columns:
        column = plain_column(item)
        if column is None:
            assert item.typed is not None
            computed = [definition.value(item.typed, members) for members in results]
            columns.append(as_arrow(computed, item.field.type))
            continue
        place = q.names.index(column.stream)
        rows = pa.array([members[place] for members in results], pa.int64())
        columns.append(read[column.stream].column(column.name).take(rows))
    return pa.table(columns, schema=bound.schema)


class Definition:
    """A query over rows of plain values."""

    def __init__(self, bound: BoundQuery, rows: Sequence[list[dict[str, Any]]]) -> None:
        query = self.query = bound.query
        self.rows = rows
        self.conditions = [check(condition, bound.schemas) for condition in query.on]
        self.conditions.sort(key=lambda typed: typed.node.calls)  # a function may raise: last
        self.filters = [
            [check(condition, bound.schemas) for condition in stream.conditions]
            for stream in query.streams
        ]
        self.units = [_unit(stream) for stream in query.streams]
        self.windows = [
            stream.window.nanoseconds if isinstance(stream.window, Duration) else stream.window
            for stream in query.streams
        ]

    def results(self) -> Iterator[Members]:
        """Row numbers of the members of all that comes out."""
        if self.query.sides.exists or self.query.sides.missing:
            yield from self._asked()
            return
        found = self._joined(range(len(self.rows)))
        yield from found
        yield from self._alone(found)

    def _joined(self, streams: Sequence[int]) -> list[tuple[int, ...]]:
        """Results of the join of some streams."""
        found = list(self.combinations(streams))
        nearest = self.query.nearest is not None and len(streams) > 1
        return list(self._nearest(found)) if nearest else found

    def _asked(self) -> Iterator[Members]:
        """Combinations of streams for which others have rows that fit, or have none."""
        sides = self.query.sides
        shown = sides.given(len(self.rows))
        found = set(self._joined(shown))
        for asked, wanted in ((sides.exists, True), (sides.missing, False)):
            if asked:
                of = sorted({*shown, *asked})
                fitting = {
                    tuple(row for s, row in zip(of, numbers, strict=True) if s in shown)
                    for numbers in self._joined(of)
                }
                found = {numbers for numbers in found if (numbers in fitting) == wanted}
        for numbers in sorted(found):
            member = dict(zip(shown, numbers, strict=True))
            yield tuple(member.get(s) for s in range(len(self.rows)))

    def _alone(self, found: Sequence[Members]) -> Iterator[Members]:
        """Rows of kept streams that are in no result."""
        for stream in self.query.sides.keep:
            matched = {numbers[stream] for numbers in found}
            for row in self.usable(stream):
                if row not in matched:
                    yield tuple(row if s == stream else None for s in range(len(self.rows)))

    def combinations(self, streams: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Rows of some streams, in their order, that fit together."""
        partial: list[tuple[int, ...]] = [()]
        for place, stream in enumerate(streams):
            reached = {self.query.names[s] for s in streams[: place + 1]}
            due = [
                c
                for c in self.conditions
                if self.query.names[stream] in c.streams and set(c.streams) <= reached
            ]
            usable = self.usable(stream)
            longer = ((*rows, row) for rows in partial for row in usable)
            partial = [rows for rows in longer if self._fits(streams, rows, due)]
        yield from partial

    def _fits(
        self, streams: Sequence[int], rows: tuple[int, ...], conditions: Sequence[Typed]
    ) -> bool:
        """Whether the last of some rows fits those before it."""
        member = dict(zip(streams, rows, strict=False))
        apart = [pair for pair in self.query.exclude_self if set(pair) <= set(member)]
        return (
            self._inside(member)
            and all(member[one] != member[other] for one, other in apart)
            and all(value(condition, self._named(member)) is True for condition in conditions)
        )

    def usable(self, stream: int) -> list[int]:
        """The rows of a stream that have a time and that its ``where`` lets pass."""
        name = self.query.names[stream]
        return [
            number
            for number, row in enumerate(self.rows[stream])
            if self.time(stream, number) is not None
            and all(value(one, {name: row}) is True for one in self.filters[stream])
        ]

    def time(self, stream: int, row: int) -> Any:
        """Nanoseconds, or an integer as it is."""
        time = self.rows[stream][row][self.query.streams[stream].time]
        return None if time is None else time * self.units[stream]

    def value(self, typed: Typed, members: Members) -> Any:
        """The value of a selected expression."""
        numbered = {s: row for s, row in enumerate(members) if row is not None}
        nothing = {s: _NoRow() for s in range(len(members)) if s not in numbered}
        rows = self._named(numbered) | {self.query.names[s]: row for s, row in nothing.items()}
        return value(typed, rows)

    def _named(self, member: Mapping[int, int]) -> dict[str, Row]:
        return {self.query.names[s]: self.rows[s][row] for s, row in member.items()}

    def _inside(self, member: Mapping[int, int]) -> bool:
        """Whether every row is within its stream's window of the newest."""
        times = {s: self.time(s, row) for s, row in member.items()}
        newest = max(times.values())
        for s, time in times.items():
            window: Any = self.windows[s]
            if isinstance(window, RowWindow):
                if not self._among_last(s, member, window.count):
                    return False
                continue
            age = newest - time
            if age > window or (self.query.closed == "right" and age and age >= window):
                return False
        return True

    def _among_last(self, stream: int, member: Mapping[int, int], count: int) -> bool:
        """Whether fewer rows of a stream come behind its own, up to the latest of all."""

        def place(s: int, row: int) -> tuple[Any, int, int]:
            return (self.time(s, row), s, row)

        latest = max(place(s, row) for s, row in member.items())
        own = place(stream, member[stream])
        behind = [row for row in self.usable(stream) if own < place(stream, row) <= latest]
        return len(behind) < count

    def _nearest(self, found: list[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        """Those that are among the best of the row that completes them."""
        most = self.query.nearest
        if self.query.direction is not None:
            yield from self._nearest_in_time(found)
            return
        (typed,) = (t for c in self.conditions for t in _measures(c))
        assert isinstance(typed.node, PairFunction)
        sign = -1 if typed.node.name in LARGEST_FIRST else 1
        of: dict[tuple[int, int], list[Any]] = {}
        for i, j in found:
            t, u = self.time(0, i), self.time(1, j)
            later, earlier = ((1, j), (t, i)) if u >= t else ((0, i), (u, j))
            cost = sign * value(typed, self._named({0: i, 1: j}))
            of.setdefault(later, []).append((cost, *earlier, (i, j)))
        for candidates in of.values():
            for *_, pair in sorted(candidates)[:most]:
                yield pair

    def _nearest_in_time(self, found: list[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        """Those whose second row is among the nearest in time to the first."""
        of: dict[int, list[Any]] = {}
        for i, j in found:
            ahead = self.time(1, j) - self.time(0, i)
            if ahead <= 0 and self.query.direction != "forward":
                of.setdefault(i, []).append((-ahead, 0, -j, (i, j)))
            elif ahead >= 0 and self.query.direction != "backward":
                of.setdefault(i, []).append((ahead, 1, j, (i, j)))
        for candidates in of.values():
            for *_, pair in sorted(candidates)[: self.query.nearest]:
                yield pair


class _NoRow(dict[str, Any]):
    """Of a stream of which no row is in a result: every column is null."""

    def __missing__(self, column: str) -> None:
        return None


def _measures(typed: Typed) -> Iterator[Typed]:
    if isinstance(typed.node, PairFunction):
        yield typed
    for part in typed.parts:
        yield from _measures(part)


def _unit(stream: Stream) -> int:
    """What an integer time counts: nanoseconds of its unit, or itself."""
    return 1 if stream.unit is None else NANOSECONDS[stream.unit]
