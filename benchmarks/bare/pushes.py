"""Pushes of W1 and W2 by bare loops in C, beside which the product's can be measured.

python -m benchmarks.bare.pushes
"""

from __future__ import annotations

import ctypes
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.bare.library import loops, pointers
from benchmarks.continuous import READY_PUSHES, arrived, sources
from benchmarks.workloads import WORKLOADS

SIZES = (1, 64, 1024, 16_384)
RESULTS = 4  # of a row of W1, about


@dataclass(frozen=True, slots=True)
class Bare:
    """What a bare loop costs, and what it found."""

    workload: str
    size: int
    row_ns: float
    results: int
    checksum: int


def measure(name: str, size: int, rounds: int = 3) -> Bare:
    """Join W1 or W2 by pushes of so many rows: least thread time of the rounds.

    A round of its own, without a clock, sums up the results; a wrong answer ends the program.
    """
    workload = WORKLOADS[name]
    tables = workload.tables()
    column = {"equality": "k", "band": "x"}[workload.kind]
    times = [np.ascontiguousarray(table["ts"]) for table in tables]
    values = [np.ascontiguousarray(table[column]) for table in tables]
    keys = int(max(v.max() for v in values)) + 1 if workload.kind == "equality" else 0
    found, total = ctypes.c_int64(), ctypes.c_int64()

    def run(summed: Any) -> int:
        taken: int = loops("pushes").pushes(
            ctypes.c_int64(len(times[0])),
            ctypes.c_int64(size),
            pointers(times),
            pointers(values),
            ctypes.c_int64(keys),
            ctypes.c_double(workload.limit),
            ctypes.c_int64(workload.window),
            ctypes.byref(found),
            summed,
        )
        return taken

    run(ctypes.byref(total))
    if (found.value, total.value) != (workload.results, workload.checksum):
        sys.exit(f"{name} in bare pushes of {size}: {found.value} results, sum {total.value}")
    least = min(run(None) for _ in range(rounds))
    rows = sum(len(t) for t in times)
    return Bare(name, size, least / rows, found.value, total.value)


def call(name: str, rows: int) -> float:
    """Nanoseconds of a function of Python that takes and gives what a push of one row does.

    It looks up the arrays of the row, joins nothing, and gives two new arrays in a dictionary.
    """
    source = sources([WORKLOADS[name].tables()[0].combine_chunks()])[0]

    def answer(_: str, row: dict[str, Any]) -> dict[str, Any]:
        for column in row:
            row[column]
        return {"a": np.empty(RESULTS, np.int64), "b": np.empty(RESULTS, np.int64)}

    taken, found = 0, 0
    for start in range(0, rows, READY_PUSHES):
        ready = [arrived(source, at, 1) for at in range(start, start + READY_PUSHES)]
        begun = time.thread_time_ns()
        for row in ready:
            found += len(answer(name, row)["a"])
        taken += time.thread_time_ns() - begun
    return taken / rows


def main() -> None:
    """Print all sizes."""
    for name in ("W1", "W2"):
        for size in SIZES:
            bare = measure(name, size)
            print(f"{name} {size:6d}: {bare.row_ns:6.1f} ns a row, {bare.results} results")


if __name__ == "__main__":
    main()
