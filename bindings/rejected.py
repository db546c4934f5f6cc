"""Rows that could not be joined: kept for the user to look at, as many as asked for."""

from __future__ import annotations

from collections import deque

import numpy as np
import pyarrow as pa
from windjoin.kernels.spec import Bools

REASON = "windjoin_reason"


class Rejected:
    """The newest ``most`` rejected rows of one stream; all are counted."""

    def __init__(self, schema: pa.Schema, most: int) -> None:
        self.null_time = self.late = 0
        self._most = most
        self._kept: deque[pa.Table] = deque()
        self._rows = 0
        self._schema = schema.append(pa.field(REASON, pa.string()))

    def add(self, table: pa.Table, null_time: Bools | None, late: Bools | None) -> None:
        """Take what the masks say of ``table``."""
        for mask, reason in ((null_time, "null time"), (late, "late")):
            rows = np.flatnonzero(mask) if mask is not None else ()
            if not len(rows):
                continue
            if reason == "late":
                self.late += len(rows)
            else:
                self.null_time += len(rows)
            kept = table.take(rows)
            self._keep(kept.append_column(REASON, pa.array([reason] * len(rows), pa.string())))

    def _keep(self, rows: pa.Table) -> None:
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
        if not self._kept:
            return self._schema.empty_table()
        return pa.concat_tables(self._kept, promote_options="permissive")
