"""Rows that could not be joined: kept for the user to look at, as many as asked for."""

from __future__ import annotations

from collections import deque

import numpy as np
import pyarrow as pa
from windjoin.kernels.spec import I64, Bools
from windjoin.layout import empty_table
from windjoin.output import take

REASON = "windjoin_reason"
MOST_WAITING = 32  # tables of which some rows are to be copied
MOST_WAITING_ROWS = 1 << 15  # of all of them


class Rejected:
    """The newest ``most`` rejected rows of one stream; all are counted.

    To take a few rows of a table costs as much as to join them, so some tables wait and are copied
    from together.
    """

    def __init__(self, schema: pa.Schema, most: int) -> None:
        self.null_time = self.late = 0
        self._most = most
        self._kept: deque[pa.Table] = deque()
        self._rows = 0
        self._waiting: list[tuple[pa.Table, I64, str]] = []
        self._waiting_rows = 0
        self._schema = schema.append(pa.field(REASON, pa.string()))

    def add(self, table: pa.Table, null_time: Bools | None, late: Bools | None) -> None:
        """Take what the masks say of ``table``."""
        if null_time is not None:
            self.null_time += self._add(table, np.flatnonzero(null_time), "null time")
        if late is not None:
            self.late += self._add(table, np.flatnonzero(late), "late")

    def resume(self, table: pa.Table, null_time: int, late: int) -> None:
        """Go on where another left off, with what its `table` gave."""
        self.null_time, self.late = null_time, late
        if table.num_rows:
            self._kept.append(table)
            self._rows = table.num_rows

    def _add(self, table: pa.Table, rows: I64, reason: str) -> int:
        if len(rows):
            self._waiting.append((table, rows, reason))
            self._waiting_rows += table.num_rows
        if len(self._waiting) >= MOST_WAITING or self._waiting_rows >= MOST_WAITING_ROWS:
            self._settle()
        return len(rows)

    def _settle(self) -> None:
        """Copy the rows of all tables that wait, and let go of those."""
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        together: list[tuple[pa.Table, I64, str]] = []
        for table, rows, reason in waiting:
            if together and not table.schema.equals(together[0][0].schema, check_metadata=True):
                self._keep(together)
                together = []
            together.append((table, rows, reason))
        if together:
            self._keep(together)

    def _keep(self, together: list[tuple[pa.Table, I64, str]]) -> None:
        """Copy rows of tables of one schema."""
        starts = np.cumsum([0, *(table.num_rows for table, _, _ in together)])
        at = [start + rows for start, (_, rows, _) in zip(starts, together, strict=False)]
        reasons = [reason for _, rows, reason in together for _ in range(len(rows))]
        all_of_them = pa.concat_tables([table for table, _, _ in together])
        columns = [take(column, np.concatenate(at)) for column in all_of_them.columns]
        rows = pa.Table.from_arrays(columns, schema=all_of_them.schema).append_column(
            REASON, pa.array(reasons, pa.string())
        )
        self._kept.append(rows)
        self._rows += rows.num_rows
        while self._rows > self._most:
            excess = self._rows - self._most
            oldest = self._kept.popleft()
            self._rows -= oldest.num_rows
            if oldest.num_rows > excess:
                self._kept.appendleft(oldest.slice(excess))
                self._rows += oldest.num_rows - excess

    def table(self) -> pa.Table:
        """The rows kept, oldest first."""
        self._settle()
        if not self._kept:
            return empty_table(self._schema)
        return pa.concat_tables(self._kept, promote_options="permissive")
