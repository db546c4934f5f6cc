"""Whole tables by bare loops in C."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from benchmarks.bare.library import loops, pointers
from benchmarks.checksum import checksum
from benchmarks.workloads import WORKLOADS

I64 = ctypes.c_int64


def column(table: Any, name: str) -> Any:
    """A column as one array."""
    return np.ascontiguousarray(table[name])


def chains(name: str) -> int:
    """Nanoseconds to join three streams by chains of equal keys."""
    workload = WORKLOADS[name]
    tables = workload.tables()
    times, keys = ([column(table, c) for table in tables] for c in ("ts", "k"))
    found = [np.zeros(workload.results, np.int64) for _ in tables]
    results, most = I64(), max(int(k.max()) for k in keys)
    taken: int = loops("chains").chains(
        I64(len(times[0])), pointers(times), pointers(keys), I64(most + 1),
        I64(workload.window), I64(workload.results), pointers(found), ctypes.byref(results),
    )  # fmt: skip
    if (results.value, checksum(found)) != (workload.results, workload.checksum):
        raise SystemExit(f"{name}: {results.value} results by bare chains")
    return taken


def masks(tables: list[dict[str, Any]], reach: int, limit: float) -> tuple[int, int]:
    """Nanoseconds to compare every row with its window, and how many pairs are close."""
    rows = len(tables[0]["x"])
    found = [np.zeros(rows * 64, np.int64) for _ in tables]
    results = I64()
    taken: int = loops("masks").masks(
        I64(rows), *(ctypes.c_void_p(table["x"].ctypes.data) for table in tables), I64(reach),
        ctypes.c_double(limit), pointers(found), ctypes.byref(results),
    )  # fmt: skip
    return taken, results.value
