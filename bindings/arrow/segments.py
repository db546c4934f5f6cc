"""Segments: what crosses an exchange.  A row is an Arrow message, or a piece of a long one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from windjoin.arrow.narrow import Form, narrow_schema, narrowed, widened
from windjoin.arrow.pieces import MessageAssembler, cut
from windjoin.arrow.plan import Limits
from windjoin.arrow.routes import Copies
from windjoin.diffusion.stretches import I32
from windjoin.kernels.spec import I64

PARTIAL = -1  # in place of a stream number: partial results
_FIELDS: list[Any] = [
    pa.field("host", pa.int32(), nullable=False),
    pa.field("stream", pa.int32(), nullable=False),
    pa.field("start", pa.int64(), nullable=False),  # no row of the segment is before it
    pa.field("sequence", pa.int64(), nullable=False),  # partition of the sender, and a number
    pa.field("piece", pa.int32(), nullable=False),  # of the message, from 0
    pa.field("pieces", pa.int32(), nullable=False),
    pa.field("form", pa.binary(), nullable=False),  # which columns travel narrow; of piece 0
    pa.field("payload", pa.binary(), nullable=False),
]
SEGMENTS = pa.schema(_FIELDS)
PARTITION_SHIFT = 32


class ExchangeSegment(NamedTuple):
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
        self._waiting: list[tuple[int, int, Form, pa.Buffer]] = []
        self._waiting_bytes = 0

    def write(self, rows: pa.RecordBatch, starts: I64, copies: Copies) -> Iterator[pa.RecordBatch]:
        """Send copies of ``rows``; ``starts[i]`` is the time by which row i is needed."""
        chosen, hosts = by_host_and_time(copies, starts)
        self.copies += len(chosen)
        if not len(chosen):
            return
        borders = np.flatnonzero(np.diff(hosts)) + 1
        for first, last in zip([0, *borders], [*borders, len(hosts)], strict=True):
            moved = _taken(rows, chosen[first:last])
            step = max(1, self.limits.payload_bytes * len(moved) // max(1, moved.nbytes))
            for begin in range(0, len(moved), step):
                part = moved.slice(begin, step)
                self._add(int(hosts[first]), int(starts[chosen[first + begin]]), part)
                if self._waiting_bytes >= self.limits.message_bytes:
                    yield self._flush()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is still waiting."""
        if self._waiting:
            yield self._flush()

    def _add(self, host: int, start: int, rows: pa.RecordBatch) -> None:
        narrow, form = narrowed(rows)
        payload = narrow.serialize()
        self._waiting.append((host, start, form, payload))
        self._waiting_bytes += payload.size
        self.bytes += payload.size + len(form)

    def _flush(self) -> pa.RecordBatch:
        hosts, starts, forms, payloads = zip(*self._waiting, strict=True)
        pieces = cut(payloads, self.limits.piece_bytes)
        numbers = np.arange(self._next, self._next + len(pieces.message))
        columns = [
            np.array(hosts)[pieces.message],
            np.full(len(numbers), self.stream),
            np.array(starts)[pieces.message],
            numbers,
            pieces.piece,
            pieces.pieces,
            [b"" if n else forms[m] for m, n in zip(pieces.message, pieces.piece, strict=True)],
        ]
        arrays = [arrow_array(c, f.type) for c, f in zip(columns, SEGMENTS, strict=False)]
        self.segments += len(hosts)
        self._next += len(numbers)
        self._waiting, self._waiting_bytes = [], 0
        return pa.RecordBatch.from_arrays([*arrays, pieces.bytes], schema=SEGMENTS)


def by_host_and_time(copies: Copies, starts: I64) -> tuple[I64, I32]:
    """Rows and hosts of the copies, those of a host together and in order of ``starts``."""
    rows, hosts = copies
    times = starts[rows]
    if not bool((times[1:] >= times[:-1]).all()):
        order = np.lexsort((times, hosts))
    elif bool((hosts[1:] >= hosts[:-1]).all()):
        return rows, hosts
    else:
        order = np.argsort(hosts, kind="stable")
    return rows[order], hosts[order]


def _taken(rows: pa.RecordBatch, chosen: I64) -> pa.RecordBatch:
    """The chosen rows; as they lie if they lie together."""
    first = int(chosen[0])
    if int(chosen[-1]) - first + 1 == len(chosen) and bool((np.diff(chosen) == 1).all()):
        return rows.slice(first, len(chosen))
    return rows.take(arrow_array(chosen, pa.int64()))


def arrow_array(values: Any, arrow: Any) -> Any:
    """An array of a type that is only known at run time."""
    return pa.array(values, arrow)


def in_order(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All segments, as those of a host must come."""
    order: Any = [(name, "ascending") for name in ("start", "stream", "sequence")]
    yield from pa.Table.from_batches(batches, SEGMENTS).sort_by(order).to_batches()


class SegmentReader:
    """Segments as they lie in memory: only columns that travelled narrow are copied."""

    def __init__(self, schemas: dict[int, pa.Schema]) -> None:
        self.schemas = schemas
        self._assembler = MessageAssembler()

    def read(self, batch: pa.RecordBatch) -> Iterator[ExchangeSegment]:
        """The segments that are complete with this batch."""
        for head, message in self._assembler.messages(batch):
            schema = self.schemas[head.stream]
            rows = pa.ipc.read_record_batch(message, narrow_schema(schema, head.form))
            yield ExchangeSegment(
                head.host, head.stream, head.start, widened(rows, head.form, schema)
            )

    def finish(self) -> None:
        """All segments must have been complete."""
        self._assembler.finish()
