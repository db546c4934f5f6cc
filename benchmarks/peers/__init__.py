"""Other engines on the same workloads: one file per engine, one line per workload in its `JOBS`.

A peer prepares outside the clock: its tables are in memory, in its own format.  What the clock
sees is `Job.run`; `Job.members` then turns what `run` gave into row numbers to be checked.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from benchmarks.generators import I64
from benchmarks.workloads import Workload

OURS = "windjoin"
PEERS = ("duckdb", "polars", "pandas", "numpy", "setsimilaritysearch", "faiss", "trees")


@dataclass(frozen=True, slots=True)
class Job:
    """One engine ready to answer one workload."""

    run: Callable[[], Any]
    members: Callable[[Any], list[I64]]  # row numbers per stream, outside the clock


Prepare = Callable[[Workload, list[pa.Table], int], Job]  # the last argument: threads
Jobs = Mapping[str, Mapping[str, Prepare]]  # workload -> variant -> prepare


def jobs(peer: str) -> Jobs:
    """Import an engine, ours or a peer, and give what it can do."""
    place = "benchmarks.ours" if peer == OURS else f"benchmarks.peers.{peer}_peer"
    module = importlib.import_module(place)
    found: Jobs = module.JOBS
    return found


def letters(count: int) -> list[str]:
    """Give the names of the streams of a workload: a, b, c ..."""
    return [chr(ord("a") + n) for n in range(count)]
