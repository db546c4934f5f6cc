"""numpy and its BLAS, slice of time by slice of time: what a researcher would write.

"bits" counts common items by words of 64 bits, "gemm" computes distances from norms and a matrix
product, "bytes" subtracts images; each compares a block of rows with all of its window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.generators import I64
from benchmarks.peers import Job, Jobs
from benchmarks.peers.duckdb_peer import words
from benchmarks.workloads import Workload

Pairs = tuple[I64, I64]


def blocks(ta: I64, tb: I64, window: int, size: int) -> Iterator[tuple[slice, slice, Any]]:
    """Give blocks of a, the rows of b that may join them, and who is in whose window."""
    for start in range(0, len(ta), size):
        rows = slice(start, min(start + size, len(ta)))
        low = int(np.searchsorted(tb, ta[rows.start] - window))
        high = int(np.searchsorted(tb, ta[rows.stop - 1] + window, "right"))
        ahead = ta[rows, None] - tb[None, low:high]
        yield rows, slice(low, high), np.abs(ahead) <= window


def collect(found: list[Pairs]) -> list[I64]:
    """Join the pairs of all blocks."""
    return [np.concatenate([pairs[n] for pairs in found]) for n in (0, 1)]


def positions(mask: NDArray[np.bool_], rows: slice, others: slice) -> Pairs:
    """Turn a block's mask into row numbers."""
    a, b = np.nonzero(mask)
    return a + rows.start, b + others.start


def bits(workload: Workload, tables: list[pa.Table]) -> Callable[[], list[I64]]:
    """Two words per set, population counts of their conjunctions."""
    ts = [t["ts"].to_numpy() for t in tables]
    a, b = ([words(t)[f"w{n}"].to_numpy().view(np.uint64) for n in (0, 1)] for t in tables)

    def run() -> list[I64]:
        found = []
        for rows, others, inside in blocks(ts[0], ts[1], workload.window, 64):
            common = np.bitwise_count(a[0][rows, None] & b[0][None, others])
            common += np.bitwise_count(a[1][rows, None] & b[1][None, others])
            found.append(positions((common >= workload.limit) & inside, rows, others))
        return collect(found)

    return run


def gemm(workload: Workload, tables: list[pa.Table]) -> Callable[[], list[I64]]:
    """All near pairs by matrix products, triples from their adjacency matrices."""
    ts = [t["ts"].to_numpy() for t in tables]
    v = [vectors(t) for t in tables]
    norms = [(x * x).sum(1) for x in v]

    def adjacency(p: int, q: int) -> NDArray[np.bool_]:
        matrix = np.zeros((len(ts[p]), len(ts[q])), dtype=np.bool_)
        for rows, others, inside in blocks(ts[p], ts[q], workload.window, 256):
            squares = norms[p][rows, None] + norms[q][None, others]
            squares -= 2 * (v[p][rows] @ v[q][others].T)
            matrix[rows, others] = (squares <= workload.limit) & inside
        return matrix

    def run() -> list[I64]:
        return triples(workload, ts, adjacency(0, 1), adjacency(0, 2), adjacency(1, 2))

    return run


def triples(workload: Workload, ts: list[I64], ab: Any, ac: Any, bc: Any) -> list[I64]:
    """Rows of three streams of which every two are near, from the matrices of near pairs."""
    reach = [
        np.searchsorted(t, [ts[0] - workload.window, ts[0] + workload.window + 1]) for t in ts[1:]
    ]
    found: list[tuple[I64, I64, I64]] = []
    for i in range(len(ab)):
        (b0, b1), (c0, c1) = reach[0][:, i], reach[1][:, i]
        js, ks = np.flatnonzero(ab[i, b0:b1]) + b0, np.flatnonzero(ac[i, c0:c1]) + c0
        j, k = np.nonzero(bc[js[:, None], ks])
        found.append((np.full(len(j), i), js[j], ks[k]))
    return [np.concatenate([triple[n] for triple in found]) for n in range(3)]


def vectors(table: pa.Table) -> NDArray[Any]:
    """Give a column of fixed-size lists as a matrix."""
    column = table["v"].combine_chunks()
    return np.asarray(column.values.to_numpy()).reshape(len(column), -1)


def bytes_apart(workload: Workload, tables: list[pa.Table]) -> Callable[[], list[I64]]:
    """Greater minus smaller byte, summed, one image against its window."""
    ts = [t["ts"].to_numpy() for t in tables]
    a, b = (vectors(t) for t in tables)

    def run() -> list[I64]:
        found = []
        for rows, others, inside in blocks(ts[0], ts[1], workload.window, 1):
            apart = np.maximum(a[rows], b[others]) - np.minimum(a[rows], b[others])
            near = apart.sum(1, dtype=np.uint32) <= workload.limit
            found.append(positions(near[None] & inside, rows, others))
        return collect(found)

    return run


def prepare(
    plan: Callable[[Workload, list[pa.Table]], Callable[[], list[I64]]],
    workload: Workload,
    tables: list[pa.Table],
    threads: int,
) -> Job:
    """Lay out the arrays; the BLAS has its threads from the environment."""
    return Job(plan(workload, tables), lambda found: found)


JOBS: Jobs = {
    "W3": {"bits": partial(prepare, bits)},
    "W3_slice": {"bits": partial(prepare, bits)},
    "W4": {"gemm": partial(prepare, gemm)},
    "W6": {"bytes": partial(prepare, bytes_apart)},
}
