"""The work of a task, opened on the executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from windjoin.arrow.hashing import hash_key
from windjoin.arrow.packing import CountsFunction, as_schema, pack
from windjoin.arrow.plan import Plan
from windjoin.arrow.probing import probe
from windjoin.arrow.segments import arrow_array, in_order
from windjoin.arrow.tally import tally
from windjoin.spark.sources import Fetched, Read

KEYS = pa.schema([("hash", pa.int64()), ("rows", pa.int64()), ("stream", pa.int32())])
HEAVIEST = 64  # keys that a partition reports


@dataclass(frozen=True, slots=True)
class Load:
    """Rows, and the streams that they are."""

    streams: tuple[int, ...]
    read: Read

    @property
    def first(self) -> int:
        """A number for what is packed of it, unique over what an exchange is made of."""
        return self.streams[0] << 24


@dataclass(frozen=True, slots=True)
class Pack:
    """Rows to segments: of one frame, or of all that lie in files."""

    plan: Plan
    loads: tuple[Load, ...]

    @property
    def name(self) -> str:
        """What Spark shows."""
        streams = (stream for load in self.loads for stream in load.streams)
        return "_".join(["pack", *(self.plan.query.names[stream] for stream in streams)])

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        given = list(batches) if len(self.loads) > 1 else batches  # a few numbers, or rows
        for load in self.loads:
            number = partition + load.first
            report = _report(meter, ("pack", *load.streams), partition)
            rows = load.read(given)
            yield from pack(rows, self.plan, load.streams, partition=number, report=report)


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """Segments to results."""

    plan: Plan
    stage: int

    @property
    def name(self) -> str:
        """What Spark shows."""
        return f"probe_{self.stage + 1}_of_{self.plan.stages}"

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        report = _report(meter, ("probe", self.stage), partition)
        return probe(batches, self.plan, self.stage, partition=partition, report=report)


@dataclass(frozen=True, slots=True)
class ReadAndProbe:
    """Files to results: every host reads all of them and keeps its own rows."""

    plan: Plan
    loads: tuple[Load, ...]

    @property
    def name(self) -> str:
        """What Spark shows."""
        return "_".join(["read", *self.plan.query.names])

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            hosts: list[int] = batch.column(0).to_pylist()  # type: ignore[assignment]
            for host in hosts:
                yield from self._join(host, meter)

    def _join(self, host: int, meter: Any) -> Iterator[pa.RecordBatch]:
        segments: list[pa.RecordBatch] = []
        for load in self.loads:
            read = load.read
            assert isinstance(read, Fetched)
            report = _stayed(_report(meter, ("pack", *load.streams), host), host)
            segments += pack(
                read.all(), self.plan, load.streams,
                partition=load.first, report=report, host=host,
            )  # fmt: skip
        report = _report(meter, ("probe", 0), host)
        yield from probe(in_order(segments), self.plan, partition=host, report=report)


@dataclass(frozen=True, slots=True)
class TallyTimes:
    """How many rows a stream has over time."""

    plan: Plan
    stream: int
    read: Read
    name: ClassVar[str] = "count_times"

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        return tally(self.read(batches), self.plan, self.stream)


@dataclass(frozen=True, slots=True)
class TallyKeys:
    """How often the most frequent keys of a stream occur, and all others (hash 0 by convention)."""

    plan: Plan
    stream: int
    key: int
    read: Read
    name: ClassVar[str] = "count_keys"

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition: int, meter: Any
    ) -> Iterator[pa.RecordBatch]:
        counts: dict[int, int] = {}
        schema = self.plan.schema(self.stream)
        total = 0
        for batch in self.read(batches):
            rows = as_schema(batch, schema, self.plan.query.names[self.stream])
            prepared = self.plan.bound.prepare(self.stream, rows, 0).rows
            chosen = np.arange(len(prepared))
            if prepared.usable is not None:
                chosen = np.flatnonzero(prepared.usable)
            total += len(chosen)
            found, often = np.unique(
                hash_key(prepared.keys[self.key], chosen).view(np.int64), return_counts=True
            )
            for place in np.argsort(-often, kind="stable")[:HEAVIEST]:
                counts[int(found[place])] = counts.get(int(found[place]), 0) + int(often[place])
        heavy = sorted(counts.items(), key=lambda item: -item[1])[:HEAVIEST]
        rest = total - sum(often for _, often in heavy)
        hashes, sizes = [0, *(h for h, _ in heavy)], [rest, *(n for _, n in heavy)]
        columns = [hashes, sizes, [self.stream] * len(hashes)]
        yield pa.RecordBatch.from_arrays(
            [arrow_array(c, f.type) for c, f in zip(columns, KEYS, strict=True)], schema=KEYS
        )


def _stayed(report: CountsFunction | None, host: int) -> CountsFunction | None:
    """Counts of rows that no exchange moved, and that every host has read."""
    if report is None:
        return None

    def add(counts: dict[str, Any]) -> None:
        read = ("rows", "rejected", "joinable") if host else ()
        report(counts | dict.fromkeys((*read, "bytes", "segments"), 0))

    return add


def _report(meter: Any, step: tuple[Any, ...], partition: int) -> CountsFunction | None:
    """Counts by step and partition: an attempt that is repeated replaces what it counted before."""
    if meter is None:
        return None

    def add(counts: dict[str, Any]) -> None:
        meter.add({(*step, counts.get("stream"), partition): counts})

    return add
