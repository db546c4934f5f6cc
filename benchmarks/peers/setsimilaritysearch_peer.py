"""SetSimilaritySearch: an inverted index with prefix and position filters, for one slice of time.

It has no window and no overlap, so it gets a slice in which every row is in every other's window,
and the containment that an overlap is for a query of so many items.  py_stringsimjoin, the other
library for such joins, cannot be built with current compilers and Python versions.
"""

from __future__ import annotations

import pyarrow as pa
from SetSimilaritySearch import SearchIndex

from benchmarks.generators import I64
from benchmarks.peers import Job, Jobs
from benchmarks.workloads import Workload

Pairs = tuple[list[int], list[int]]


def prepare(workload: Workload, tables: list[pa.Table], threads: int) -> Job:
    """Sets as Python lists of different items; one thread is all that there is."""
    left, right = ([sorted(set(items)) for items in table["s"].to_pylist()] for table in tables)
    at_least = int(workload.limit)

    def run() -> Pairs:
        index = SearchIndex(right, similarity_func_name="containment", similarity_threshold=0.0)
        found: Pairs = [], []
        for number, items in enumerate(left):
            if len(items) < at_least:
                continue
            index.similarity_threshold = at_least / len(items)
            for other, _ in index.query(items):
                found[0].append(number)
                found[1].append(other)
        return found

    def members(found: Pairs) -> list[I64]:
        return [pa.array(side, pa.int64()).to_numpy() for side in found]

    return Job(run, members)


JOBS: Jobs = {"W3_slice": {"search": prepare}}
