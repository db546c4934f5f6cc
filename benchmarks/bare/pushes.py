"""Pushes of W1 and W2 by bare loops in C, beside which the product's can be measured.

python -m benchmarks.bare.pushes
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import WORKLOADS

SOURCE = Path(__file__).with_suffix(".c")
COMPILER = ("cc", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")
SIZES = (1, 64, 1024, 16_384)


@dataclass(frozen=True, slots=True)
class Bare:
    """What a bare loop costs, and what it found."""

    workload: str
    size: int
    row_ns: float
    results: int
    checksum: int


@cache
def library() -> Any:
    """Compile the loops for this processor."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pushes.so"
        subprocess.run([*COMPILER, "-o", str(path), str(SOURCE)], check=True)
        loops = ctypes.CDLL(str(path))
    loops.pushes.restype = ctypes.c_int64
    return loops


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
        pointers = ctypes.c_void_p * 2
        taken: int = library().pushes(
            ctypes.c_int64(len(times[0])),
            ctypes.c_int64(size),
            pointers(*(t.ctypes.data for t in times)),
            pointers(*(v.ctypes.data for v in values)),
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


def main() -> None:
    """Print all sizes."""
    for name in ("W1", "W2"):
        for size in SIZES:
            bare = measure(name, size)
            print(f"{name} {size:6d}: {bare.row_ns:6.1f} ns a row, {bare.results} results")


if __name__ == "__main__":
    main()
