"""faiss, slice of time by slice of time: an exact index of every window, asked for a radius.

"flat" computes all distances of a block of rows and its window (`IndexFlatL2.range_search`); who is
in whose window is filtered afterwards, and triples come from the pairs as with numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.generators import I64
from benchmarks.peers import Job, Jobs
from benchmarks.peers.numpy_peer import blocks, triples, vectors
from benchmarks.workloads import Workload


def flat(workload: Workload, tables: list[pa.Table]) -> Callable[[], list[I64]]:
    """All near pairs by flat indexes, triples from their adjacency matrices."""
    ts = [t["ts"].to_numpy() for t in tables]
    v = [np.ascontiguousarray(vectors(t), np.float32) for t in tables]

    def adjacency(p: int, q: int) -> NDArray[np.bool_]:
        matrix = np.zeros((len(ts[p]), len(ts[q])), dtype=np.bool_)
        for rows, others, inside in blocks(ts[p], ts[q], workload.window, 256):
            index: Any = faiss.IndexFlatL2(v[q].shape[1])
            index.add(v[q][others])
            ends, _, found = index.range_search(v[p][rows], workload.limit)
            asking = np.repeat(np.arange(len(ends) - 1), np.diff(ends.astype(np.int64)))
            near = inside[asking, found]
            matrix[asking[near] + rows.start, found[near] + others.start] = True
        return matrix

    def run() -> list[I64]:
        return triples(workload, ts, adjacency(0, 1), adjacency(0, 2), adjacency(1, 2))

    return run


def prepare(workload: Workload, tables: list[pa.Table], threads: int) -> Job:
    """Lay out the arrays."""
    faiss.omp_set_num_threads(threads)
    return Job(flat(workload, tables), lambda found: found)


JOBS: Jobs = {"W4": {"flat": prepare}}
