"""Workloads over a part of their time, or over several times as much; as dense as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.oracle import oracle
from benchmarks.workloads import Workload


def sized(workload: Workload, share: float, times: int) -> Workload:
    """The first ``share`` of a workload, or ``times`` as much, with the answer of the oracle."""
    if share == 1 and times == 1:
        return workload
    other = shortened(workload, share) if share != 1 else longer(workload, times)
    found = oracle(other.kind, other.tables(), other.window, other.limit)
    return replace(other, results=found[0], checksum=found[1])


def shortened(workload: Workload, share: float) -> Workload:
    """The rows of the first part of the time: as dense as all, so the work shrinks likewise."""

    def generate() -> list[pa.Table]:
        tables = workload.tables()
        last = max(table["ts"][-1].as_py() for table in tables) * share
        return [table.slice(0, int(np.searchsorted(table["ts"], last))) for table in tables]

    return replace(workload, name=f"{workload.name}x{share:g}", generate=generate)


def longer(workload: Workload, times: int) -> Workload:
    """The rows several times, so far apart in time that copies never meet; no checksum."""

    def generate() -> list[pa.Table]:
        tables = workload.tables()
        span = max(table["ts"][-1].as_py() for table in tables) + 2 * workload.window + 1
        return [
            pa.concat_tables(moved(table, copy * span) for copy in range(times)) for table in tables
        ]

    name = f"{workload.name}x{times}"
    return replace(workload, name=name, results=workload.results * times, generate=generate)


def moved(table: pa.Table, ticks: int) -> pa.Table:
    """The rows at another time."""
    place = table.schema.get_field_index("ts")
    return table.set_column(place, "ts", pc.add(table["ts"], ticks))
