"""Segments: what crosses an exchange.  One row is one Arrow message and where it belongs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from windjoin.arrow.plan import Limits
from windjoin.arrow.routes import Copies
from windjoin.errors import DataError
from windjoin.kernels.spec import I64

PARTIAL = -1  # in place of a stream number: partial results
_FIELDS: list[Any] = [
    pa.field("host", pa.int32(), nullable=False),
    pa.field("stream", pa.int32(), nullable=False),
    pa.field("start", pa.int64(), nullable=False),  # no row of the segment is before it
    pa.field("sequence", pa.int64(), nullable=False),  # partition of the sender, and a number
    pa.field("rows", pa.int64(), nullable=False),
    pa.field("payload", pa.binary(), nullable=False),
]
SEGMENTS = pa.schema(_FIELDS)
PARTITION_SHIFT = 32


class Segment(NamedTuple):
    """One decoded row of an exchange."""

    host: int
    stream: int
    start: int
    rows: pa.RecordBatch


class SegmentWriter:
    """Cuts routed rows into segments, and segments into batches of bounded size."""

    def __init__(self, stream: int, partition: int, limits: Limits) -> None:
        self.stream, self.limits = stream, limits
        self.bytes = self.segments = self.copies = 0
        self._next = partition << PARTITION_SHIFT
        self._waiting: list[tuple[int, int, int, int, pa.Buffer]] = []
        self._waiting_bytes = 0

    def write(self, rows: pa.RecordBatch, starts: I64, copies: Copies) -> Iterator[pa.RecordBatch]:
        """Send copies of ``rows``; ``starts[i]`` is the time by which row i is needed."""
        order = np.lexsort((starts[copies.rows], copies.hosts))
        chosen, hosts = copies.rows[order], copies.hosts[order]
        whole = len(chosen) == len(rows) and bool((chosen == np.arange(len(rows))).all())
        moved = rows if whole else rows.take(arrow_array(chosen, pa.int64()))
        self.copies += len(chosen)
        per_segment = max(1, self.limits.payload_bytes * len(moved) // max(1, moved.nbytes))
        borders = np.flatnonzero(np.diff(hosts)) + 1
        for first, last in zip([0, *borders], [*borders, len(hosts)], strict=True):
            for begin in range(first, last, per_segment):
                end = min(begin + per_segment, last)
                start = int(starts[chosen[begin]])
                self._add(int(hosts[begin]), start, moved.slice(begin, end - begin))
                if self._waiting_bytes >= self.limits.message_bytes:
                    yield self._flush()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is still waiting."""
        if self._waiting:
            yield self._flush()

    def _add(self, host: int, start: int, rows: pa.RecordBatch) -> None:
        payload = rows.serialize()
        self._waiting.append((host, start, self._next, len(rows), payload))
        self._waiting_bytes += payload.size
        self.bytes += payload.size
        self._next += 1

    def _flush(self) -> pa.RecordBatch:
        hosts, starts, numbers, rows, payloads = zip(*self._waiting, strict=True)
        self.segments += len(hosts)
        columns = [hosts, [self.stream] * len(hosts), starts, numbers, rows]
        arrays = [arrow_array(c, f.type) for c, f in zip(columns, SEGMENTS, strict=False)]
        self._waiting, self._waiting_bytes = [], 0
        return pa.RecordBatch.from_arrays([*arrays, _binary(payloads)], schema=SEGMENTS)


def arrow_array(values: Any, arrow: Any) -> Any:
    """An array of a type that is only known at run time."""
    return pa.array(values, arrow)


def _binary(payloads: Sequence[pa.Buffer]) -> Any:
    """One copy of every payload, and no Python bytes in between."""
    offsets = np.cumsum([0, *(payload.size for payload in payloads)])
    if offsets[-1] >= 2**31:
        raise DataError(
            f"a message of {offsets[-1]} bytes is more than the 2 GiB that Spark moves at a time;"
            " rows this large cannot be sent, select fewer or smaller columns"
        )
    joined = pa.py_buffer(b"".join(payloads))
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).data), joined]
    return pa.Array.from_buffers(pa.binary(), len(payloads), buffers)


def read_segments(batch: pa.RecordBatch, schemas: dict[int, pa.Schema]) -> Iterator[Segment]:
    """Segments as they lie in memory: nothing is copied."""
    places = (batch.column(name).to_pylist() for name in ("host", "stream", "start"))
    payloads = batch.column("payload")
    for host, stream, start, payload in zip(*places, payloads, strict=True):
        rows = pa.ipc.read_record_batch(payload.as_buffer(), schemas[stream])
        yield Segment(host, stream, start, rows)
