"""Trees of scipy and scikit-learn, slice of time by slice of time, asked for a radius.

"kdtree" is `scipy.spatial.cKDTree`, "balltree" and "brute" are those of `sklearn.neighbors`.
A tree of every window; who is in whose window is filtered afterwards, and triples come from the
pairs as with numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from benchmarks.generators import I64
from benchmarks.peers import Job, Jobs
from benchmarks.peers.numpy_peer import blocks, triples, vectors
from benchmarks.workloads import Workload

Near = Callable[[Any, Any, float, int], Any]  # stored, asking, radius, threads -> lists of numbers


def kd_tree(stored: Any, asking: Any, radius: float, threads: int) -> Any:
    """Ask a tree of medians."""
    return cKDTree(stored).query_ball_point(asking, radius, workers=threads)


def neighbors(algorithm: Any, stored: Any, asking: Any, radius: float, threads: int) -> Any:
    """Ask scikit-learn."""
    index = NearestNeighbors(radius=radius, algorithm=algorithm, n_jobs=threads).fit(stored)
    return index.radius_neighbors(asking, return_distance=False)


def plan(
    near: Near, workload: Workload, tables: list[pa.Table], threads: int
) -> Callable[[], list[I64]]:
    """All near pairs by one of them, triples from their adjacency matrices."""
    ts = [t["ts"].to_numpy() for t in tables]
    v = [vectors(t).astype(np.float64) for t in tables]
    radius = float(np.sqrt(workload.limit))  # between the distances that there are

    def adjacency(p: int, q: int) -> NDArray[np.bool_]:
        matrix = np.zeros((len(ts[p]), len(ts[q])), dtype=np.bool_)
        for rows, others, inside in blocks(ts[p], ts[q], workload.window, 256):
            lists = near(v[q][others], v[p][rows], radius, threads)
            asking = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
            found = np.concatenate([np.asarray(one, np.int64) for one in lists])
            close = inside[asking, found]
            matrix[asking[close] + rows.start, found[close] + others.start] = True
        return matrix

    def run() -> list[I64]:
        return triples(workload, ts, adjacency(0, 1), adjacency(0, 2), adjacency(1, 2))

    return run


def prepare(near: Near, workload: Workload, tables: list[pa.Table], threads: int) -> Job:
    """Lay out the arrays."""
    return Job(plan(near, workload, tables, threads), lambda found: found)


JOBS: Jobs = {
    "W4": {
        "kdtree": partial(prepare, kd_tree),
        "balltree": partial(prepare, partial(neighbors, "ball_tree")),
        "brute": partial(prepare, partial(neighbors, "brute")),
    }
}
