"""What routers change for slots whose rows are stored once: bytes that travel, and CPU seconds.

    python -m benchmarks.slots_as_hosts

Joins of three streams by epochs, on an exchange in this process: all is done by the functions that
Spark's tasks call.  ``in turn`` is what `windjoin.spark.stream` does, and `start` without
``adaptive``; the others are what `start` does with the routers of `windjoin.diffusion`.  Longest is
the sum over stages of what the slot with the most work took: epochs take as long if each slot has a
processor.  All are CPU seconds, so other work on the machine changes little.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
from windjoin.arrow.segments import SEGMENTS
from windjoin.epochs.deciding import decide
from windjoin.epochs.following import follow
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.packing import pack_epoch
from windjoin.epochs.probing import probe_epoch

from tests.epochs.cluster import Cluster

RESULTS = Path(__file__).parent / "results" / "slots_as_hosts"
SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])
NAMES, SLOTS, SPAN = "abc", 4, 1000
WAYS = (("in turn", "ctr", None), ("ctr", "ctr", follow), ("psp", "psp", follow))


@dataclass(frozen=True)
class Work:
    """A join of three streams by an equal key."""

    name: str
    epochs_of_window: int
    rows: int  # of a stream in an epoch
    keys: int


WORKS = (Work("window of 8 epochs", 8, 4000, 3000), Work("window of 40 epochs", 40, 2000, 20_000))


def query(work: Work) -> Any:
    """Each stream is joined with the next one."""
    a, b, c = (wj.stream(name, time="t", window=work.epochs_of_window * SPAN) for name in NAMES)
    columns = [stream["n"] for stream in (a, b, c)]
    return wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]], select=columns)


def rows_of(work: Work, epoch: int) -> dict[str, pa.Table]:
    """What an epoch brings."""
    chance, found = np.random.default_rng(epoch), {}
    for name in NAMES:
        times = np.sort(chance.integers(SPAN * epoch, SPAN * (epoch + 1), work.rows))
        numbers = np.arange(work.rows) + work.rows * epoch
        columns = [times, chance.integers(0, work.keys, work.rows), numbers]
        found[name] = pa.Table.from_arrays([pa.array(one) for one in columns], schema=SCHEMA)
    return found


class Driven:
    """A continuous join, epoch by epoch."""

    def __init__(self, work: Work, strategy: str, router: Any, root: str) -> None:
        self.work, self.router, self.clock = work, router, 0.0
        self.made = Cluster(query(work), dict.fromkeys(NAMES, SCHEMA), root, 1)
        self.made.start(slots=SLOTS, strategy=strategy)

    def epoch(self, epoch: int) -> dict[str, float]:
        """One epoch; what it took."""
        job, began = self.made.job, time.process_time()
        manifest = decide(job, epoch, "run0", now=lambda: self.clock, router=self.router)
        decided = time.process_time()
        packed: list[pa.RecordBatch] = []
        for stream, table in enumerate(rows_of(self.work, epoch).values()):
            packed += pack_epoch(table.to_batches(), job, manifest, [stream], stream)
        told = {"deciding": decided - began, "packing": time.process_time() - decided}
        told |= self._joined(manifest, packed)
        self.clock += 1.1 * told["longest"]
        return told

    def _joined(self, manifest: Manifest, arrived: list[pa.RecordBatch]) -> dict[str, float]:
        job, busy, longest, sent = self.made.job, np.zeros(SLOTS), 0.0, 0
        for stage in range(job.stages):
            table = pa.Table.from_batches(arrived, SEGMENTS)
            sent += table.nbytes
            hosts, arrived, took = table["host"].to_numpy(), [], np.zeros(SLOTS)
            for slot in range(SLOTS):
                own = table.take(pa.array(np.flatnonzero(hosts == slot))).to_batches()
                began = time.process_time()
                arrived += probe_epoch(own, job, manifest, slot, stage)
                took[slot] = time.process_time() - began
            busy += took
            longest += float(took.max())
        for slot in range(SLOTS):  # slots ran one after the other, so clocks tell nothing
            for stage in range(job.stages):
                path = Path(job.log.path(manifest.folder, f"{slot}-{stage}.load"))
                seconds = busy[slot] if stage == 0 else 0.0
                path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": seconds}))
        results = sum(batch.num_rows for batch in arrived)
        return {"cpu": busy.sum(), "longest": longest, "bytes": sent, "results": results}


def measure(work: Work) -> list[str]:
    """A table of all ways, by the epochs after the window has filled."""
    first, last = work.epochs_of_window + 2, work.epochs_of_window + 12
    lines = [f"## {work.name}, {work.rows} rows a stream and epoch, {SLOTS} slots", ""]
    lines += [
        "| segments | bytes | CPU | longest | deciding |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    base: dict[str, float] = {}
    for name, strategy, router in WAYS:
        with tempfile.TemporaryDirectory() as root:
            driven = Driven(work, strategy, router, root)
            done = [driven.epoch(epoch) for epoch in range(last)][first:]
        mean = {key: sum(one[key] for one in done) / len(done) for key in done[0]}
        base = base or mean
        assert mean["results"] == base["results"]
        ratios = [f"{mean[key] / base[key]:.2f}x" for key in ("bytes", "cpu", "longest")]
        lines.append(f"| {name} | {' | '.join(ratios)} | {1000 * mean['deciding']:.0f} ms |")
    told = f"in turn: {base['bytes']:,.0f} bytes, {base['cpu']:.3f} CPU seconds an epoch"
    return [*lines, "", f"{told}, {base['results']:,.0f} results.", ""]


def main() -> None:
    """Measure, tell and keep."""
    lines = ["# Routers for slots", "", f"pyarrow {pa.__version__}, numpy {np.__version__}.", ""]
    for work in WORKS:
        lines += measure(work)
    text = "\n".join(lines)
    print(text)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "report.md").write_text(text)


if __name__ == "__main__":
    main()
