"""windjoin on the named workloads, through its public interface only."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from benchmarks.generators import I64
from benchmarks.peers import Job, Jobs, letters
from benchmarks.queries import query
from benchmarks.workloads import WORKLOADS, Workload


def row_numbers(workload: Workload, tables: list[pa.Table], threads: int) -> Job:
    """Row numbers out; the query is built outside the clock, binding to the tables inside."""
    names = letters(workload.streams)
    named = {n: t.drop_columns(["i"]) for n, t in zip(names, tables, strict=True)}
    built = query(workload)

    def members(found: dict[str, Any]) -> list[I64]:
        return [found[name] for name in names]

    return Job(lambda: built.indices(named, threads=threads), members)


def payload(workload: Workload, tables: list[pa.Table], threads: int) -> Job:
    """All columns of all members out."""
    names = letters(workload.streams)
    named = dict(zip(names, tables, strict=True))
    built = query(workload)

    def members(found: pa.Table) -> list[I64]:
        return [found[f"{name}_i"].to_numpy() for name in names]

    return Job(lambda: built.run(named, threads=threads), members)


JOBS: Jobs = {
    name: {"table": payload} if name == "W1_payload" else {"rows": row_numbers}
    for name in WORKLOADS
}
