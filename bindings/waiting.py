"""What comes before the schemas of all streams are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from windjoin.checking import check_bound, column_type
from windjoin.errors import HeldBackWarning, SessionError, quoted, warn
from windjoin.expressions import Column
from windjoin.held import MANY_BYTES
from windjoin.layout import gatherable_schema
from windjoin.own_times import END, OwnTimes
from windjoin.query import Query


@dataclass(frozen=True, slots=True)
class Mark:
    """What `PendingRows` had at some moment."""

    came: int
    nbytes: int
    rows: list[int]
    schemas: set[str]
    newest: dict[int, int]  # time by stream


def columns_read(query: Query, name: str, schema: pa.Schema, rows_only: bool) -> list[str]:
    """Columns of a stream that conditions read, and that results, if they have any, are made of.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> columns_read(wj.join(a, b, on=a["k"] == b["k"]), "a", pa.schema([("x", pa.int64())]), True)
    ['t', 'k']
    """
    stream = query.streams[query.names.index(name)]
    expressions = [*query.on, *stream.conditions, *(query.select or ())]
    columns = [stream.time]
    if query.select is None and not rows_only and name in query.given:
        columns += schema.names
    columns += [one.name for e in expressions for one in e.columns() if one.stream == name]
    return list(dict.fromkeys(columns))


class PendingRows:
    """Rows and promises in the order in which they came, until every stream has shown its schema.

    Rows are not kept, only counted, once a stream has ended that never had any: no combination of
    rows can be complete then.
    """

    def __init__(self, query: Query, lateness: Any, rows_only: bool = False) -> None:
        self._query = query
        self._rows_only = rows_only
        self._lateness = lateness
        self._names = query.names
        self.schemas: dict[str, pa.Schema] = {}
        self._came: list[tuple[int, Any]] = []  # stream number, a table or a time or END
        self._rows = [0] * len(query.names)
        self._times: dict[int, OwnTimes] = {}
        self._hopeless = False
        self._told = False
        self.nbytes = 0  # of the rows

    def tell(self) -> None:
        """Tell once if much waits for a stream that has not begun."""
        if self._told or self.nbytes <= MANY_BYTES:
            return
        self._told = True
        unseen = [name for name in self._names if name not in self.schemas]
        warn(
            f"{self.nbytes / 1e6:,.0f} MB of rows wait until the schema of {quoted(unseen)} is"
            " known; give schemas= to open, then nothing waits, and idle= and advance let rows go",
            HeldBackWarning,
        )

    def times_of(self, number: int, schema: pa.Schema) -> OwnTimes:
        """What is known of the times of a stream whose rows have that schema, which is checked."""
        name = self._names[number]
        columns = columns_read(self._query, name, self.schemas.get(name, schema), self._rows_only)
        first = {name: gatherable_schema(self.schemas.get(name, schema))}
        check_bound(name, schema, {one: column_type(Column(name, one), first) for one in columns})
        if number in self._times:
            return self._times[number]
        times = OwnTimes(self._query, number, schema, self._lateness)
        for earlier, what in self._came:
            if earlier == number:
                times.promise(what)
        return times

    def add(self, number: int, table: pa.Table, times: OwnTimes, newest: int) -> None:
        """Rows of a stream, with the newest of their times."""
        self.schemas.setdefault(self._names[number], table.schema)
        self._times[number] = times
        times.marks.newest = newest
        self._rows[number] += table.num_rows
        if not self._hopeless or self.complete:
            self._came.append((number, table))
            self.nbytes += table.nbytes

    def mark(self) -> Mark:
        """Where it stands, for `take_back` and `leave`."""
        newest = {number: times.marks.newest for number, times in self._times.items()}
        return Mark(len(self._came), self.nbytes, list(self._rows), set(self.schemas), newest)

    def take_back(self, mark: Mark) -> None:
        """Undo each `add` since ``mark``: schemas are complete, and do not fit each other."""
        del self._came[mark.came :]
        self.nbytes, self._rows = mark.nbytes, mark.rows
        self.schemas = {name: self.schemas[name] for name in mark.schemas}
        self._times = {number: self._times[number] for number in mark.newest}
        for number, newest in mark.newest.items():
            self._times[number].marks.newest = newest

    def promise(self, number: int, time: Any) -> None:
        """No rows of a stream before a time, or none at all: END."""
        if number in self._times:
            self._times[number].promise(time)
        if time is END and self._names[number] not in self.schemas:
            self._hopeless = self._query.sides.plain
        if self._hopeless:
            self._came = [(n, what) for n, what in self._came if not isinstance(what, pa.Table)]
            self.nbytes = 0
        self._came.append((number, time))

    def check_alone(self) -> None:
        """`SessionError` if rows may come out without those of streams that nobody has seen."""
        sides = self._query.sides
        unseen = [name for name in self._names if name not in self.schemas]
        asked = [k for k in range(len(self._names)) if k not in sides.missing]
        alone = [k for k in sides.keep if self._rows[k]]
        if sides.missing and all(self._rows[k] for k in asked):
            alone = asked
        if unseen and alone:
            raise SessionError(
                f"rows of {quoted(self._names[k] for k in alone)} may come out without partners,"
                f" but the columns of {quoted(unseen)} are not known: push an empty table of"
                f" {quoted(unseen[:1])} first, or give schemas= to open"
            )

    @property
    def complete(self) -> bool:
        """Whether the schemas of all streams are known."""
        return len(self.schemas) == len(self._names)

    def leave(self, mark: Mark) -> list[tuple[int, Any]]:
        """All that came before ``mark``, in order; nothing waits any more."""
        came, self._came, self.nbytes = self._came[: mark.came], [], 0
        return came

    @property
    def came(self) -> list[tuple[int, Any]]:
        """All that came and waits, in order."""
        return list(self._came)

    @property
    def counted(self) -> list[int]:
        """Rows of every stream so far."""
        return list(self._rows)

    @property
    def marks(self) -> dict[str, list[int]]:
        """How far streams have come whose schemas are known: newest and promised."""
        return {
            self._names[number]: [times.marks.newest, times.marks.promised]
            for number, times in self._times.items()
        }

    def resume(
        self,
        schemas: dict[str, pa.Schema],
        came: list[tuple[int, Any]],
        rows: list[int],
        marks: dict[str, list[int]],
    ) -> None:
        """Go on where another left off, of which these properties told."""
        self.schemas, self._came, self._rows = dict(schemas), came, list(rows)
        self.nbytes = sum(what.nbytes for _, what in came if isinstance(what, pa.Table))
        for name, (newest, promised) in marks.items():
            number = self._names.index(name)
            times = OwnTimes(self._query, number, schemas[name], self._lateness)
            times.marks.newest, times.marks.promised = newest, promised
            self._times[number] = times
        self._hopeless = self._query.sides.plain and any(
            what is END and self._names[number] not in schemas for number, what in came
        )

    def rows(self, number: int) -> int:
        """Rows of a stream so far."""
        return self._rows[number]

    def batches(self, number: int) -> int:
        """Tables of a stream so far."""
        return sum(n == number for n, _ in self._came)
