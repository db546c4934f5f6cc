"""The work of a slot in an epoch: keep its rows in the log, give the results they complete."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from windjoin.arrow.blocks import BlockCounts
from windjoin.arrow.local_join import LocalJoin
from windjoin.arrow.places import at_place
from windjoin.arrow.plan import Plan
from windjoin.arrow.probing import MOST_ROWS, ResultBatches
from windjoin.arrow.segments import SegmentReader, arrow_array
from windjoin.epochs.completing import completed, completed_in_parts
from windjoin.epochs.hopping import PARTIALS, Hops
from windjoin.epochs.job import NEED, Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.nearest import nearest_pairs
from windjoin.epochs.packing import ALONE as ALONE_ROWS
from windjoin.epochs.packing import COUNTED, COUNTS, REJECTED, rejected_schema
from windjoin.epochs.requested import COMBINED, Requested
from windjoin.epochs.settling import Settling
from windjoin.epochs.shedding import told_before
from windjoin.epochs.slotfile import ALONE, MERGED, NEW, SlotFile, SlotWriter, read_slot
from windjoin.epochs.stores import folder_at
from windjoin.epochs.warm import Warm, forget, serves
from windjoin.epochs.window import SlotWindow, table_of
from windjoin.kernels.spec import I64
from windjoin.pyx.base.column import in_order
from windjoin.pyx.base.pieces import sorting

log = logging.getLogger("windjoin.epochs")


def probe_epoch(
    batches: Iterable[pa.RecordBatch],
    job: Job,
    manifest: Manifest,
    slot: int,
    stage: int = 0,
    told: dict[str, Any] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Results that the rows of an epoch complete in one slot; ``told`` gets what it took.

    Where partial results travel there are several stages; all but the last give segments for the
    next.  The slot's file is written in the first, before anything leaves.
    """
    work = SlotWork(job, manifest, slot, stage)
    with at_place(f"epoch {manifest.epoch}, slot {slot}"):
        work.take(batches)
        if stage:
            work.read_new()
        else:
            work.keep()
        yield from work.results()
        load = work.report()
        if told is not None:
            told |= load


class SlotWork:
    def __init__(self, job: Job, manifest: Manifest, slot: int, stage: int) -> None:
        self.job, self.manifest, self.slot, self.stage = job, manifest, slot, stage
        routes = manifest.own
        self.hops = Hops(job.plan, routes, stage, slot) if routes.units.once else None
        self.began, self.cpu = time.perf_counter(), time.thread_time()
        self.window = SlotWindow(job, manifest, slot)
        self.new: list[pa.Table] = []
        self.counts: list[dict[str, Any]] = []
        self.refused: dict[int, list[pa.RecordBatch]] = {}
        self.written = 0
        self.alone: dict[int, list[pa.RecordBatch]] = {}
        self.tally = BlockCounts([0] * job.streams)
        self.how = "nothing to do"
        self.joining = 0.0  # CPU seconds of what finds results, where they travel
        self.behind = 0.0  # CPU seconds for what this worker had missed
        # what the slot tells of it; in an epoch without rows as in the one before
        self.shedding = None if job.shed is None else told_before(manifest, slot)

    # -- rows come -------------------------------------------------------------------------------

    def take(self, batches: Iterable[pa.RecordBatch]) -> None:
        """All segments of the epoch."""
        job, streams = self.job, range(self.job.streams)
        schemas: dict[int, pa.Schema] = {s: self.window.schemas[s] for s in streams}
        schemas |= {REJECTED - s: rejected_schema(job, s) for s in streams}
        schemas |= {ALONE_ROWS - s: self.window.schemas[s] for s in streams}
        if self.hops is not None:
            schemas |= self.hops.schemas
        reader = SegmentReader({**schemas, COUNTS: COUNTED})
        pieces: list[list[pa.RecordBatch]] = [[] for _ in streams]
        told: dict[int, dict[str, Any]] = {}
        for batch in batches:
            for segment in reader.read(batch):
                if segment.stream >= 0:
                    pieces[segment.stream].append(segment.rows)
                elif segment.stream == COUNTS:
                    _add(told, segment.rows.to_pylist()[0])
                elif segment.stream <= PARTIALS and self.hops is not None:
                    self.hops.take(segment.stream, segment.rows)
                elif segment.stream <= ALONE_ROWS:
                    self.alone.setdefault(ALONE_ROWS - segment.stream, []).append(segment.rows)
                else:
                    self.refused.setdefault(REJECTED - segment.stream, []).append(segment.rows)
        reader.finish()
        self.counts = [told[stream] for stream in sorted(told)]
        for stream in streams if self.stage == 0 else ():
            table = table_of(pieces[stream], schemas[stream]).combine_chunks()
            self.new.append(self._in_order(stream, table))
        if self.hops is not None and self.stage == 0:
            self.new = self.hops.take_rows(self.new)

    def _in_order(self, stream: int, table: pa.Table) -> pa.Table:
        times = self._times(stream, table)
        if in_order(times):
            return table
        order, _ = sorting(times)
        return table.take(arrow_array(order, pa.int64()))

    def _times(self, stream: int, rows: pa.Table | pa.RecordBatch) -> I64:
        return self.job.plan.bound.prepare(stream, rows).rows.time

    def read_new(self) -> None:
        """The rows of the epoch as the first stage wrote them."""
        file = read_slot(self.job.log, f"{self.manifest.folder}/{self.slot}")
        for stream, schema in enumerate(self.window.schemas):
            own = [o for o in file.footer.sections if (o.kind, o.stream) == (NEW, stream)]
            self.new.append(table_of([file.rows(one, schema) for one in own], schema))
        self._read_alone(file)

    def _read_alone(self, file: SlotFile) -> None:
        for one in file.footer.sections:
            if one.kind == ALONE:
                rows = file.rows(one, self.window.schemas[one.stream])
                self.alone.setdefault(one.stream, []).append(rows)

    # -- rows are kept ---------------------------------------------------------------------------

    def keep(self) -> None:
        """Write the slot's file, once; and rows that are not joined where they are wanted."""
        writer = SlotWriter(self.slot)
        for stream, table in enumerate(self.new):
            for rows in table.to_batches():
                self._add(writer, NEW, stream, rows)
        for stream, pieces in self.alone.items():
            for rows in pieces:
                writer.add(ALONE, stream, rows, 0, 0)
        if self.manifest.merge is not None:
            self._merge(writer, self.manifest.merge)
        parts = writer.finish(self.counts)
        self.written = writer.size
        self.job.log.put(f"{self.manifest.folder}/{self.slot}", parts)
        for stream, refused in self.refused.items():
            self._set_aside(stream, refused)

    def _merge(self, writer: SlotWriter, epochs: tuple[int, int]) -> None:
        """What earlier files hold of some epochs, as this one's."""
        entries = [e for e in self.manifest.window if epochs[0] <= e.epoch <= epochs[1]]
        for stream, pieces in enumerate(self.window.pieces(entries)):
            if pieces:
                table = table_of(pieces, self.window.schemas[stream]).combine_chunks()
                for rows in self._in_order(stream, table).to_batches():
                    self._add(writer, MERGED, stream, rows)

    def _add(self, writer: SlotWriter, kind: str, stream: int, rows: pa.RecordBatch) -> None:
        if len(rows):
            times = self._times(stream, rows)
            writer.add(kind, stream, rows, int(times[0]), int(times[-1]))

    def _set_aside(self, stream: int, rows: Sequence[pa.RecordBatch]) -> None:
        """Rows of a stream that are not joined: a file for each epoch, written once."""
        assert self.job.rejected is not None
        name = self.job.plan.query.names[stream]
        made = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches(rows), made)
        folder = folder_at(self.job.rejected)
        file = f"{name}/epoch-{self.manifest.epoch:010d}-{self.job.told_apart}.parquet"
        folder.put(file, [made.getvalue()])

    # -- results leave ---------------------------------------------------------------------------

    def results(self) -> Iterator[pa.RecordBatch]:
        """The results that the new rows complete, and what else has become final."""
        asked = self.job.asked
        if asked is None or self.stage < self.manifest.stages - 1:
            yield from self._found()
            return
        if self.manifest.epoch == self.slot == 0 and self.job.static is not None:
            self._read_alone(read_slot(self.job.log, f"../{self.job.static.folder}/0"))
        settling = Settling(self.job, self.manifest, self.slot, self.window)
        if asked.form == COMBINED:
            yield from self._combined(asked, settling)
        elif self.job.together:
            found = nearest_pairs(self.job, self.manifest, self.window, self.new, self.tally)
            self.how = "nearest"
            yield from settling.take(found)
        else:
            yield from settling.take(self._found())
        yield from settling.finish(self.new, self.alone)

    def _found(self) -> Iterator[pa.RecordBatch]:
        """The results of the join that slots carry out."""
        if self.hops is not None:
            self.how = "hops"
            most = None if self._fits() else self.job.part_bytes
            yield from self._timed(self.hops.results(self.window, self.tally, most))
            return
        if not any(table.num_rows for table in self.new):
            return
        if not self._fits():
            forget(self.job, self.slot)
        elif serves(self.job, self.manifest, self.slot):
            yield from self._by_session()
            return
        yield from self._scanned(self.job.plan, range(self.job.streams))

    def _timed(self, found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same, and what finding it took."""
        while True:
            began = time.thread_time()
            batch = next(found, None)
            self.joining += time.thread_time() - began
            if batch is None:
                return
            yield batch

    def _fits(self) -> bool:
        """Whether the window may be in memory as a whole."""
        return self.job.memory is None or NEED * self.window.held[1] <= self.job.memory

    def _scanned(self, plan: Plan, streams: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """The whole window is joined with the new rows, in parts if it does not fit."""
        joined, new = LocalJoin(plan), [self.new[stream] for stream in streams]
        output = ResultBatches(plan, joined)
        if self._fits():
            self.how, old = "scan", self.window.tables()
            results = completed(joined, [old[s] for s in streams], new, plan.limits, self.tally)
        else:
            self.how = "in parts"
            parts = [self.window.parts(s, self.job.part_bytes) for s in streams]
            results = completed_in_parts(joined, parts, new, plan.limits, self.tally)
        for found in results:
            yield from output.batches(found)

    def _combined(self, asked: Requested, settling: Settling) -> Iterator[pa.RecordBatch]:
        """Combinations, from one join or two."""
        for number, (streams, plan) in enumerate(asked.parts):
            found = self._scanned(plan, streams)
            if number:
                settling.take_partners(found)
            else:
                yield from settling.take_combinations(found)

    def _by_session(self) -> Iterator[pa.RecordBatch]:
        began = time.thread_time()
        warm = Warm(self.job, self.manifest, self.slot, self.window)
        self.behind = time.thread_time() - began
        self.how = warm.how
        for found in warm.results(self.new):
            self.tally.results += found.num_rows
            for first in range(0, found.num_rows, MOST_ROWS):
                yield from found.slice(first, MOST_ROWS).combine_chunks().to_batches()
        self.tally.comparisons = warm.comparisons
        self.shedding = warm.shedding

    def report(self) -> dict[str, Any]:
        """What the epoch took, for routers and whoever watches."""
        load = {
            "slot": self.slot,
            "rows": sum(table.num_rows for table in self.new),
            "window_rows": self.window.read_rows,
            "bytes": self.written,
            "results": self.tally.results,
            "comparisons": self.tally.comparisons,
            "cpu": time.thread_time() - self.cpu,
            "behind": self.behind,
            "seconds": time.perf_counter() - self.began,
            "how": self.how,
            "worker": os.getpid(),
        }
        if self.hops is not None:
            load |= {"taken": self.hops.taken, "met": self.hops.met, "joining": self.joining}
        if self.shedding is not None:
            load["shedding"] = self.shedding
        text = json.dumps(load).encode()
        self.job.log.put(f"{self.manifest.folder}/{self.slot}-{self.stage}.load", [text])
        log.info(
            "epoch %d, slot %d: %d rows, %d results, %.3f CPU seconds, %s",
            self.manifest.epoch, self.slot, load["rows"], load["results"], load["cpu"], self.how,
        )  # fmt: skip
        return load


def _add(told: dict[int, dict[str, Any]], count: dict[str, Any]) -> None:
    """BlockCounts of one part of a stream to those of the others."""
    own = told.setdefault(count["stream"], dict.fromkeys(COUNTED.names, 0) | {"newest": None})
    for name, value in count.items():
        if name == "stream":
            own[name] = value
        elif name != "newest":
            own[name] += value
        elif value is not None:
            own[name] = value if own[name] is None else max(own[name], value)
