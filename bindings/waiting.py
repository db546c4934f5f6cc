"""What comes before the schemas of all streams are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

END = object()  # instead of a time: no more rows of this stream


class Waiting:
    """Rows and promises in the order in which they came, until every stream has shown its schema.

    Rows are not kept, only counted, once a stream has ended that never had any: no combination of
    rows can be complete then.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self.schemas: dict[str, pa.Schema] = {}
        self._came: list[tuple[int, Any]] = []  # stream number, a table or a time or END
        self._rows = [0] * len(names)
        self._hopeless = False

    def add(self, number: int, table: pa.Table) -> None:
        """Rows of a stream."""
        self.schemas.setdefault(self._names[number], table.schema)
        self._rows[number] += table.num_rows
        if not self._hopeless or self.complete:
            self._came.append((number, table))

    def take_back(self) -> None:
        """Undo the last `add`, which made the schemas complete and did not fit the others."""
        number, table = self._came.pop()
        self._rows[number] -= table.num_rows
        del self.schemas[self._names[number]]

    def promise(self, number: int, time: Any) -> None:
        """No rows of a stream before a time, or none at all: END."""
        if time is END and self._names[number] not in self.schemas:
            self._hopeless = True
            self._came = [(n, what) for n, what in self._came if not isinstance(what, pa.Table)]
        self._came.append((number, time))

    @property
    def complete(self) -> bool:
        """Whether the schemas of all streams are known."""
        return len(self.schemas) == len(self._names)

    def leave(self) -> Iterator[tuple[int, Any]]:
        """All that came, in order; nothing waits any more."""
        came, self._came = self._came, []
        return iter(came)

    def rows(self, number: int) -> int:
        """Rows of a stream so far."""
        return self._rows[number]

    def batches(self, number: int) -> int:
        """Tables of a stream so far."""
        return sum(n == number for n, _ in self._came)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(what.nbytes for _, what in self._came if isinstance(what, pa.Table))
