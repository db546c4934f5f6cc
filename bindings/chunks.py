"""Columns of live windows that Arrow alone can gather, in the batches in which they came."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from windjoin.kernels.spec import I64
from windjoin.layout import combined
from windjoin.output import take

SMALL_BATCH = 1024  # rows; smaller batches are copied together, once


class Chunks:
    """The batches that hold rows [head, tail) of one stream, of the columns somebody asks for."""

    def __init__(self, schema: pa.Schema, columns: list[str]) -> None:
        self.columns = columns
        self.schema = pa.schema([schema.field(name) for name in columns])
        self.tail = 0
        self._batches: deque[pa.Table] = deque()
        self._starts: deque[int] = deque()
        self._small: deque[pa.Table] = deque()
        self._small_rows = 0
        self._small_bytes = 0
        self.nbytes = 0  # of the columns kept, in memory
        self._files: deque[int | None] = deque()  # bytes of batches that lie in files
        self.bytes_on_disk = 0

    def append(self, table: pa.Table) -> None:
        """Keep the rows of a table."""
        rows = table.num_rows
        self.tail += rows
        if not self.columns or not rows:
            return
        chosen = table.select(self.columns)
        if chosen.schema != self.schema:  # in what it says about nulls, or in metadata
            chosen = pa.Table.from_arrays(chosen.columns, schema=self.schema)
        if rows >= SMALL_BATCH and not self._small:
            self._keep(chosen)
            return
        self._small.append(chosen)
        self._small_rows += rows
        size = chosen.nbytes
        self._small_bytes += size
        self.nbytes += size
        if self._small_rows >= SMALL_BATCH:
            self.nbytes -= self._small_bytes
            self._keep(combined(pa.concat_tables(self._small)))
            self._small.clear()
            self._small_rows = self._small_bytes = 0

    def _keep(self, table: pa.Table) -> None:
        self._starts.append(self.tail - table.num_rows)
        self._batches.append(table)
        self._files.append(None)
        self.nbytes += table.nbytes

    def chill(self, file: Callable[[], Path]) -> None:
        """Let batches lie in files, where they are mapped."""
        for number in range(len(self._batches)):
            if self._files[number] is not None:
                continue
            path = file()
            try:
                with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, self.schema) as writer:
                    writer.write_table(self._batches[number])
                with pa.memory_map(str(path)) as mapped:
                    table = pa.ipc.open_file(mapped).read_all()
                size = path.stat().st_size
            finally:
                path.unlink(missing_ok=True)  # it stays where it is mapped
            self.nbytes -= self._batches[number].nbytes
            self._batches[number], self._files[number] = table, size
            self.bytes_on_disk += size

    def expire(self, head: int) -> None:
        """Rows before ``head`` are not asked for any more."""
        while self._batches and self._starts[0] + self._batches[0].num_rows <= head:
            gone, on_disk = self._batches.popleft(), self._files.popleft()
            self._starts.popleft()
            if on_disk is None:
                self.nbytes -= gone.nbytes
            else:
                self.bytes_on_disk -= on_disk
        while self._small and self.tail - self._small_rows + self._small[0].num_rows <= head:
            oldest = self._small.popleft()
            self._small_rows -= oldest.num_rows
            self._small_bytes -= oldest.nbytes
            self.nbytes -= oldest.nbytes

    def take(self, names: list[str], rows: I64) -> list[Any]:
        """One array for each name, at arrival numbers ``rows``."""
        if not len(rows):
            return [pa.nulls(0, self.schema.field(name).type) for name in names]
        first, last = int(rows.min()), int(rows.max())
        table, start = self._stretch(first, last)
        local = rows - start
        return [take(table.column(name), local) for name in names]

    def _stretch(self, first: int, last: int) -> tuple[pa.Table, int]:
        """The batches from that with row ``first`` to that with row ``last``, as one table."""
        starts = self._starts
        chosen = []
        begin = bisect_right(starts, first) - 1
        start = starts[begin] if begin >= 0 else 0
        settled = self.tail - self._small_rows
        if begin >= 0 and first < settled:
            for number in range(begin, len(starts)):
                if starts[number] > last:
                    break
                chosen.append(self._batches[number])
        else:
            start = settled
        if last >= settled:
            chosen += self._small
        return (chosen[0] if len(chosen) == 1 else pa.concat_tables(chosen)), start
