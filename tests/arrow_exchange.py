"""The exchanges of a plan carried out in this process: pack, sort by host, probe."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.arrow import SEGMENTS, Plan, pack, probe
from windjoin.arrow.plan import ROW
from windjoin.diffusion.stretches import Histogram


def histogram(
    plan_query: Any,
    schemas: Mapping[str, pa.Schema],
    tables: Mapping[str, pa.Table],
    bins: int = 64,
) -> Histogram:
    """Rows by time, counted exactly."""
    bound = plan_query.bind(schemas)
    times = []
    for number, name in enumerate(plan_query.names):
        prepared = bound.prepare(number, tables[name])
        live = prepared.rows.usable
        times.append(prepared.rows.time if live is None else prepared.rows.time[live])
    found = np.concatenate(times)
    low, high = (int(found.min()), int(found.max())) if len(found) else (0, 0)
    width = max(1, -(-(high - low + 1) // bins))
    rows = np.zeros((len(times), bins))
    for number, own in enumerate(times):
        np.add.at(rows[number], [(int(t) - low) // width for t in own], 1)
    return Histogram(low, width, rows)


def parts(table: pa.Table, count: int, rng: np.random.Generator) -> list[pa.Table]:
    """The rows in ``count`` partitions, some of them empty."""
    cuts = sorted(rng.integers(0, len(table) + 1, count - 1).tolist())
    return [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]


def carry_out(
    plan: Plan,
    tables: Mapping[str, pa.Table],
    rng: np.random.Generator,
    reports: list[dict[str, Any]] | None = None,
    partitions: int = 3,
) -> pa.Table:
    """The result of a plan, whose every call gets a plan that has been pickled."""
    report = None if reports is None else reports.append
    wire = pickle.dumps(plan)
    onward: list[pa.RecordBatch] = []
    results: list[pa.RecordBatch] = []
    for stage, streams in enumerate(plan.inputs):
        segments = list(onward)
        for stream in streams:
            table = tables[plan.query.names[stream]]
            if stream in plan.numbered:
                table = table.append_column(ROW, pa.array(np.arange(len(table))))
            for number, part in enumerate(parts(table, partitions, rng)):
                batches = part.to_batches(max_chunksize=int(rng.integers(1, 40)))
                packed = pack(
                    batches, pickle.loads(wire), [stream], partition=number, report=report
                )
                segments += packed
        onward = []
        for host in range(plan.hosts):
            arrived = _of_host(segments, host, rng)
            made = list(probe(arrived, pickle.loads(wire), stage, partition=host, report=report))
            (results if stage == plan.stages - 1 else onward).extend(made)
    return pa.Table.from_batches(results, plan.bound.schema)


def _of_host(
    segments: Sequence[pa.RecordBatch], host: int, rng: np.random.Generator
) -> list[pa.RecordBatch]:
    table = pa.Table.from_batches(segments, SEGMENTS)
    own = table.filter(np.asarray(table["host"]) == host)
    shuffled = own.take(pa.array(rng.permutation(len(own))))
    keys = [("start", "ascending"), ("stream", "ascending"), ("sequence", "ascending")]
    return shuffled.sort_by(keys).to_batches(max_chunksize=int(rng.integers(1, 5)))
