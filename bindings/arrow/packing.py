"""`pack`: rows of a partition become segments on their way to their hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from windjoin.arrow.places import at_place
from windjoin.arrow.plan import ROW, Limits, Plan
from windjoin.arrow.routes import Copies, ExchangeRoute
from windjoin.arrow.segments import SegmentWriter
from windjoin.errors import SchemaError, hint
from windjoin.kernels.spec import I64, Rows
from windjoin.kinds import NUMBERS, kind_of, value_type
from windjoin.layout import laid_out

CountsFunction = Callable[[dict[str, Any]], None]


def pack(
    batches: Iterable[pa.RecordBatch],
    plan: Plan,
    streams: Sequence[int],
    *,
    partition: int = 0,
    report: CountsFunction | None = None,
    host: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Turn rows into routed segments (batches of `SEGMENTS`).

    ``streams``: the numbers of the streams that these rows are (several for a self-join).
    ``partition``: a number that no other call for these streams has; it tells segments apart.
    ``report``: called once at the end, for each stream with what was counted.
    ``host``: of all segments make only those of this host.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> import pyarrow as pa
    >>> from windjoin.arrow import pack, place, probe
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    >>> plan, expected = place(q, {"a": schema, "b": schema}, hosts=1, strategy="single")
    >>> rows = pa.record_batch({"t": [1, 2], "k": [5, 6]}, schema)
    >>> segments = [batch for s in (0, 1) for batch in pack([rows], plan, [s], partition=s)]
    >>> segments[0].schema.names[:3]
    ['host', 'stream', 'start']
    """
    packers = [_Packer(plan, stream, partition, host) for stream in streams]
    for batch in batches:
        for packer in packers:
            yield from packer.add(batch)
    for packer in packers:
        yield from packer.finish()
    if report is not None:
        for packer in packers:
            report(packer.counts())


class Gathered:
    """Batches of rows, until there are enough for what is sent to be worth it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._batches: list[pa.RecordBatch] = []
        self.rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> bool:
        """Whether there are enough now."""
        self._batches.append(batch)
        self.rows += batch.num_rows
        self._bytes += batch.nbytes
        return self.rows >= self._limits.gather_rows or self._bytes >= self._limits.gather_bytes

    def take(self) -> list[pa.RecordBatch]:
        """All of them; none is left."""
        taken, self._batches = self._batches, []
        self.rows = self._bytes = 0
        return taken


class _Packer:
    """The rows of one stream."""

    def __init__(self, plan: Plan, stream: int, partition: int, host: int | None) -> None:
        self.plan, self.stream, self.partition, self.host = plan, stream, partition, host
        self.schema = plan.schema(stream)
        self.travels = _Departures(plan, stream)
        self.writer = SegmentWriter(stream, partition, plan.limits)
        self.rows = self.rejected = self.joinable = 0
        self._gathered = Gathered(plan.limits)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Gather rows; send them when there are enough to be worth it."""
        own = as_schema(batch, self.schema, self.plan.query.names[self.stream])
        if self._gathered.add(own):
            yield from self._send()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Send what is left."""
        yield from self._send()
        yield from self.writer.finish()

    def _send(self) -> Iterator[pa.RecordBatch]:
        if not self._gathered.rows:
            return
        rows = one_batch(self._gathered.take(), self.schema)
        first, self.rows = self.rows, self.rows + len(rows)
        with at_place(f"partition {self.partition} of its frame, where rows count from 0"):
            prepared = self.plan.bound.prepare(self.stream, rows, first)
        if prepared.null_time is not None:
            self.rejected += int(prepared.null_time.sum())
        usable = prepared.rows.usable
        chosen = np.arange(len(rows)) if usable is None else np.flatnonzero(usable)
        self.joinable += len(chosen)
        if len(chosen):
            copies = self.travels.copies(prepared.rows, chosen)
            if self.host is not None:
                copies = copies.of(self.host)
            yield from self.writer.write(rows, prepared.rows.time, copies)

    def counts(self) -> dict[str, Any]:
        """What happened to the rows."""
        return {
            "step": "pack",
            "stream": self.plan.query.names[self.stream],
            "rows": self.rows,
            "rejected": self.rejected,
            "joinable": self.joinable,
            "copies": self.writer.copies,
            "segments": self.writer.segments,
            "bytes": self.writer.bytes,
        }


class _Departures:
    """Where the rows of one stream go first."""

    def __init__(self, plan: Plan, stream: int) -> None:
        self.route = plan.routes[stream]
        self.next: ExchangeRoute | None = None
        spec = plan.bound.spec.streams
        if plan.order and stream == plan.order[0]:  # they travel to what the next stream stored
            onward = plan.routes[plan.order[1]]
            assert isinstance(onward, ExchangeRoute)
            self.next = onward
            self.before, self.after = spec[plan.order[1]].window, spec[stream].window

    def copies(self, rows: Rows, chosen: I64) -> Copies:
        """Copies of the ``chosen`` rows."""
        times = rows.time[chosen]
        if self.next is None:
            return self.route.copies(times, chosen, rows)
        sent = self.next.meeting(less(times, self.before), more(times, self.after))
        return Copies(chosen[sent.rows], sent.hosts)


def less(times: I64, by: int) -> I64:
    """``times - by``, no less than int64 holds."""
    return np.where(times < -(2**63) + by, np.int64(-(2**63)), times - np.int64(by))


def more(times: I64, by: int) -> I64:
    """``times + by``, no more than int64 holds."""
    return np.where(times > 2**63 - 1 - by, np.int64(2**63 - 1), times + np.int64(by))


def as_schema(batch: pa.RecordBatch, schema: pa.Schema, stream: str) -> pa.RecordBatch:
    """The columns of ``schema``, by name, in its types."""
    columns = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            raise SchemaError(
                f"stream {stream!r}: these rows have no column {field.name!r}"
                f"{hint(field.name, batch.schema.names)}"
            )
        column = batch.column(place)
        if column.type != field.type and not _alike(column.type, field.type):
            raise SchemaError(
                f"stream {stream!r}: column {field.name!r} is {column.type} in these rows but"
                f" {field.type} in schemas=; cast it, or give the schema that rows have"
            )
        columns.append(laid_out(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type may be laid out as another: numbers as numbers, and so on."""
    families = {kind_of(value_type(type_)).family for type_ in (given, wanted)} - {"null"}
    return len(families) <= 1 or families <= set(NUMBERS)


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of several batches as one batch."""
    if len(batches) == 1:
        return batches[0]
    arrow: Any = pa
    return cast(pa.RecordBatch, arrow.concat_batches(batches))


__all__ = ["ROW", "CountsFunction", "as_schema", "less", "more", "one_batch", "pack"]
