"""`probe`: the segments that reached a host become results, or partial results that travel on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from windjoin.arrow.blocks import BlockJoin, Found
from windjoin.arrow.local_join import JoinContext, LocalJoin, gathered
from windjoin.arrow.packing import CountsFunction, less, more
from windjoin.arrow.partials import HopJoin, partial_schema
from windjoin.arrow.places import at_place
from windjoin.arrow.plan import Plan
from windjoin.arrow.routes import Copies, KeyRoute
from windjoin.arrow.segments import PARTIAL, ExchangeSegment, SegmentReader, SegmentWriter
from windjoin.errors import DataError
from windjoin.kernels.spec import I64

MOST_ROWS = 1 << 16  # of one batch of results


def probe(
    batches: Iterable[pa.RecordBatch],
    plan: Plan,
    stage: int = 0,
    *,
    partition: int = 0,
    report: CountsFunction | None = None,
) -> Iterator[pa.RecordBatch]:
    """Join the segments of one host.

    Segments come ordered by ``start``, so that rows can be forgotten as soon as nothing to come may
    meet them.  The last stage gives results in the schema of the query, in batches of bounded size;
    a stage before it gives segments of partial results.  ``partition`` and ``report`` are those of
    `pack`.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> import pyarrow as pa
    >>> from windjoin.arrow import pack, place, probe
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    >>> plan, expected = place(q, {"a": schema, "b": schema}, hosts=1, strategy="single")
    >>> rows = pa.record_batch({"t": [1, 2], "k": [5, 6]}, schema)
    >>> segments = [batch for s in (0, 1) for batch in pack([rows], plan, [s], partition=s)]
    >>> [row for batch in probe(segments, plan) for row in batch.to_pylist()]
    [{'a_t': 1, 'a_k': 5, 'b_t': 1, 'b_k': 5}, {'a_t': 2, 'a_k': 6, 'b_t': 2, 'b_k': 6}]
    """
    began = time.perf_counter()
    host = _Host(plan, stage, partition)
    reader = SegmentReader(host.schemas)
    for batch in batches:
        for segment in reader.read(batch):
            with at_place(f"host {segment.host}, segment from {segment.start}"):
                yield from host.add(segment)
    with at_place(f"host {host.number}, last segment"):
        reader.finish()
        yield from host.finish()
    if report is not None:
        report(host.counts() | {"seconds": time.perf_counter() - began})


class _Host:
    """One stage of a plan on one host."""

    def __init__(self, plan: Plan, stage: int, partition: int) -> None:
        self.plan, self.stage = plan, stage
        self.joined, self.inputs, schemas = stage_inputs(plan, stage)
        self.schemas = {stream: schema for stream, (_, schema) in self.inputs.items()}
        master = plan.master if not plan.order else 0
        self.block = BlockJoin(self.joined, schemas, master, plan.limits)
        self.horizon = -(2**63)
        self.number: int | None = None  # not known before something arrives
        last = stage == plan.stages - 1
        self.output: ResultBatches | Onward = (
            ResultBatches(plan, self.joined)
            if last
            else Onward(plan, self.joined, stage, partition)
        )
        self.block_schemas = schemas

    def add(self, segment: ExchangeSegment) -> Iterator[pa.RecordBatch]:
        """Take one segment."""
        self.number, stream, start, rows = segment
        if start < self.horizon:
            raise DataError(
                f"a segment that starts at {start} comes after one that starts at {self.horizon};"
                " sort the segments of a host by start before probing them"
            )
        self.horizon = start
        number = self.inputs[stream][0]
        named = pa.RecordBatch.from_arrays(rows.columns, schema=self.block_schemas[number])
        for found in self.block.add(number, start, named):
            yield from self.output.batches(found)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Join what is left."""
        for found in self.block.finish():
            yield from self.output.batches(found)
        yield from self.output.finish()

    def counts(self) -> dict[str, Any]:
        """What was done here."""
        counts = self.block.counts
        return {
            "step": "probe",
            "stage": self.stage,
            "host": self.number,
            "rows": sum(counts.rows),
            "results": counts.results,
            "comparisons": counts.comparisons,
            "blocks": counts.blocks,
            "most_bytes": counts.most_bytes,
            "rows_onward": self.output.rows,
            "bytes_onward": self.output.bytes,
        }


def stage_inputs(
    plan: Plan, stage: int
) -> tuple[JoinContext, dict[int, tuple[int, pa.Schema]], list[pa.Schema]]:
    """The join of a stage; by stream number of a segment its input and schema; schemas by input."""
    if not plan.order:
        streams = range(len(plan.routes))
        every = [plan.schema(stream) for stream in streams]
        return LocalJoin(plan), {s: (s, every[s]) for s in streams}, every
    bound, target = plan.order[: stage + 1], plan.order[stage + 1]
    left = plan.after(bound) if stage else plan
    partial, added = partial_schema(left, bound), plan.schema(target)
    first = (plan.order[0], plan.schema(plan.order[0])) if stage == 0 else (PARTIAL, partial)
    inputs = {first[0]: (0, first[1]), target: (1, added)}
    return HopJoin(left, bound, target), inputs, [partial, added]


class Meeting(Protocol):
    """Which hosts partial results travel to."""

    def meeting(self, low: I64, high: I64, began: I64) -> Copies:
        """Those with rows that results which meet ``[low, high]`` can meet.

        ``began``: the times of their rows of the first stream.
        """


class ResultBatches:
    """Found combinations as rows of the result."""

    rows = bytes = 0  # sent on

    def __init__(self, plan: Plan, joined: JoinContext) -> None:
        self.query, self.joined, self.limits = plan.bound, joined, plan.limits
        self.per_batch = 1024  # rows; the first batch tells how wide they are

    def batches(self, found: Found) -> Iterator[pa.RecordBatch]:
        """Result rows, some at a time; for any of them may a function have raised."""
        for _, error in found.errors():
            raise error from error.__cause__
        first, total = 0, len(found.rows[0])
        while first < total:
            rows, scores = (
                [column[first : first + self.per_batch] for column in columns]
                for columns in (found.rows, found.scores)
            )
            first += len(rows[0])
            table = gathered(self.joined, self.query, found.fetch, rows, scores)
            yield from table.combine_chunks().to_batches()
            width = table.nbytes / table.num_rows
            wanted = int(self.limits.message_bytes / max(1.0, width))
            self.per_batch = max(1, min(MOST_ROWS, wanted))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Nothing waits."""
        return iter(())


class Onward:
    """Found combinations as partial results on their way to the rows of the next stream."""

    def __init__(
        self,
        plan: Plan,
        joined: JoinContext,
        stage: int,
        partition: int,
        route: Meeting | None = None,
        code: int = PARTIAL,
    ) -> None:
        """``route`` if it is not that of the plan; ``code``: in place of a stream number."""
        self.streams = plan.order[: stage + 2]
        self.plan, self.joined = plan.after(self.streams), joined
        self.schema = partial_schema(self.plan, self.streams)
        self.writer = SegmentWriter(code, partition, plan.limits)
        following = plan.order[stage + 2]
        own = plan.routes[following] if route is None else route
        assert not isinstance(own, KeyRoute)
        self.route: Meeting = own
        self.window = plan.bound.spec.streams[following].window

    @property
    def rows(self) -> int:
        """Copies sent on."""
        return self.writer.copies

    @property
    def bytes(self) -> int:
        """Bytes sent on."""
        return self.writer.bytes

    def batches(self, found: Found) -> Iterator[pa.RecordBatch]:
        """Partial results as segments, some at a time."""
        raised: list[str | None] = [None] * len(found.rows[0])
        for number, error in found.errors():
            raised[number] = str(error)
        for first in range(0, len(found.rows[0]), MOST_ROWS):
            rows = [numbers[first : first + MOST_ROWS] for numbers in found.rows]
            yield from self._send(found, rows, raised[first : first + MOST_ROWS])

    def _send(
        self, found: Found, rows: list[Any], raised: list[str | None]
    ) -> Iterator[pa.RecordBatch]:
        fetch, numbers = self.joined.members_fetch(found.fetch), self.joined.members_rows(rows)
        arrays, times, until = [], [], []
        windows = self.plan.bound.spec.streams
        for stream in self.streams:
            schema = self.plan.schema(stream)
            columns = fetch(stream, schema.names, numbers[stream])
            arrays += columns
            time = self.plan.bound.prepare(stream, pa.table(columns, schema=schema)).rows.time
            times.append(time)
            until.append(more(time, windows[stream].window))
        latest, last = np.maximum.reduce(times), np.minimum.reduce(until)
        if self.plan.called:
            arrays.append(pa.array(raised, pa.string()))
        table = pa.table(arrays, schema=self.schema).combine_chunks()
        copies = self.route.meeting(less(latest, self.window), last, times[0])
        for batch in table.to_batches():
            yield from self.writer.write(batch, latest, copies)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is still waiting."""
        yield from self.writer.finish()
