"""Epochs of a continuous join carried out in this process: pack, sort out by slot, probe."""

from __future__ import annotations

import pickle
import random
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from windjoin.arrow.plan import Limits
from windjoin.arrow.segments import SEGMENTS
from windjoin.epochs import warm
from windjoin.epochs.deciding import decide, loads_of
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.packing import pack_epoch
from windjoin.epochs.planning import job_of
from windjoin.epochs.probing import probe_epoch
from windjoin.epochs.static import with_static
from windjoin.epochs.stores import below

SMALL = Limits(
    gather_rows=9, payload_bytes=64, piece_bytes=40, message_bytes=200, block_rows=8,
    block_bytes=1 << 20, results=5,
)  # fmt: skip


class Cluster:
    """An exchange without Spark; every call gets a job that has been pickled."""

    def __init__(self, query: Any, schemas: Mapping[str, pa.Schema], root: str, seed: int) -> None:
        self.query, self.schemas, self.root = query, schemas, root
        self.chance = random.Random(seed)
        self.run = "run0"
        self.clock = 0.0
        self.workers: list[Any] = [OrderedDict(), OrderedDict()]  # sessions of each
        self.hows: Counter[str] = Counter()
        self.start(slots=1)

    def start(
        self, *, run: str | None = None, small: bool = False, static: Any = None,
        **options: Any,
    ) -> None:  # fmt: skip
        """A start of the query, with options of its own."""
        limits = SMALL if small else Limits()
        folder = below(self.root, "query")
        job = job_of(self.query, self.schemas, self.root, limits=limits, **options)
        job = with_static(job, {} if static is None else static)
        self.wire = pickle.dumps(replace(job, root=folder))
        self.run = run or self.run

    @property
    def job(self) -> Job:
        return pickle.loads(self.wire)

    def epoch(
        self, epoch: int, rows: Mapping[str, Any], *, router: Any = None,
        until: int | None = None, again: Sequence[int] = (), adopt: bool = False,
    ) -> list[pa.RecordBatch]:  # fmt: skip
        """The results of an epoch; only of the first slots if it is broken off.

        Slots in ``again`` run twice: of a task's attempts one gives the results.
        """
        manifest = decide(
            self.job, epoch, self.run, now=lambda: self.clock, router=router, adopt=adopt
        )
        arrived = self._packed(manifest, rows)
        found: list[pa.RecordBatch] = []
        for stage in range(manifest.stages):
            found = []
            order = list(range(manifest.slots))
            self.chance.shuffle(order)
            for slot in order[:until]:
                for _ in range(1 + (slot in again)):
                    warm._kept = self.chance.choice(self.workers)
                    own = self._of(slot, arrived)
                    results = list(probe_epoch(own, self.job, manifest, slot, stage))
                found += results
            if until is not None:
                break
            if stage < manifest.stages - 1:
                arrived = pa.Table.from_batches(found, SEGMENTS)
        self.hows.update(load["how"] for load in loads_of(self.job.log, manifest))
        return found

    def flush(self, epoch: int) -> list[pa.RecordBatch]:
        """What is left when nothing more will come: two epochs with the watermarks at the end."""
        found: list[pa.RecordBatch] = []
        for last in (epoch, epoch + 1):
            manifest = decide(self.job, last, self.run, now=lambda: self.clock)
            ended = replace(manifest, watermarks=(2**63 - 1,) * self.job.streams)
            arrived = self._packed(ended, dict.fromkeys(self.query.names))
            for stage in range(self.job.stages):
                found_now: list[pa.RecordBatch] = []
                for slot in range(ended.slots):
                    own = self._of(slot, arrived)
                    found_now += probe_epoch(own, self.job, ended, slot, stage)
                if stage < self.job.stages - 1:
                    arrived = pa.Table.from_batches(found_now, SEGMENTS)
            found += found_now
            path = self.job.log.path(manifest.folder, "manifest.json")
            with open(path, "wb") as file:
                file.write(ended.as_bytes())
        return found

    def _packed(self, manifest: Manifest, rows: Mapping[str, Any]) -> pa.Table:
        packed: list[pa.RecordBatch] = []
        number = 0
        for streams in self._tables(rows):
            table = rows[self.query.names[streams[0]]]
            if table is None:
                continue  # it does not grow
            cuts = sorted(self.chance.randint(0, len(table)) for _ in range(2))
            for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True):
                batches = table.slice(a, b - a).to_batches(max_chunksize=self.chance.randint(1, 40))
                packed += pack_epoch(batches, self.job, manifest, streams, number)
                number += 1
        return pa.Table.from_batches(packed, SEGMENTS)

    def _tables(self, rows: Mapping[str, Any]) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for stream, name in enumerate(self.query.names):
            found.setdefault(id(rows[name]), []).append(stream)
        return list(found.values())

    def _of(self, slot: int, segments: pa.Table) -> list[pa.RecordBatch]:
        hosts = segments["host"].to_pylist()
        own = [row for row, host in enumerate(hosts) if host == slot]
        self.chance.shuffle(own)
        return segments.take(pa.array(own, pa.int64())).to_batches(
            max_chunksize=self.chance.randint(1, 5)
        )
