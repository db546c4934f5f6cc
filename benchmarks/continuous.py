"""What a row costs when it is pushed, beside the same rows joined as whole tables.

    python -m benchmarks.continuous --out benchmarks/results/continuous

Streams take turns, a few rows at a time, with row numbers out; rows have just been written when
they are pushed, as they have when they arrive.  The least thread time of the rounds counts.
``drift`` is the cost of the last quarter of the pushes over that of the second quarter: 1 is flat.
Runs of all rows must have the workload's results.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import headline, keep, load_now, machine
from benchmarks.peers import letters
from benchmarks.queries import query
from benchmarks.workloads import WORKLOADS, Workload

SIZES = {
    "W1": (1, 64, 1024, 16_384), "W1_ns": (64, 1024), "W2": (1, 64, 1024, 16_384),
    "W2_ns": (64, 1024), "W3": (64,), "W4": (1, 64),
}  # fmt: skip
MOST_PUSHES = 400_000
QUARTERS = 4
READY_PUSHES, READY_ROWS = 64, 4096  # so many at most are made ready at a time, of each stream


@dataclass(frozen=True, slots=True)
class Line:
    """One workload at one size."""

    workload: str
    size: int
    rows: int
    push_ns: float
    row_ns: float
    batch_row_ns: float
    drift: float


def as_numpy(arrow: pa.DataType) -> bool:
    """Whether a column is an array or a matrix of NumPy."""
    vectors = pa.types.is_fixed_size_list(arrow) and pa.types.is_floating(arrow.value_type)
    return pa.types.is_primitive(arrow) or vectors


def in_numpy(column: pa.ChunkedArray) -> Any:
    """The column as such."""
    if pa.types.is_primitive(column.type):
        return np.asarray(column)
    return column.chunk(0).flatten().to_numpy().reshape(-1, column.type.list_size)


def sources(tables: list[pa.Table]) -> list[Any]:
    """Streams as dictionaries of arrays, if NumPy has all they hold."""
    if all(map(as_numpy, tables[0].schema.types)):
        return [{c: in_numpy(t[c]) for c in t.column_names} for t in tables]
    return list(tables)


def arrived(source: Any, start: int, size: int) -> Any:
    """Give some rows of a stream in memory of their own, if they are plain."""
    if isinstance(source, dict):
        return {c: v[start : start + size].copy() for c, v in source.items()}
    return source.slice(start, size)


def run(
    workload: Workload, tables: list[pa.Table], size: int, rows: int
) -> tuple[list[float], int, int]:
    """Push rows of all streams through one session: nanoseconds of each quarter, pushes, results.

    A few pushes are made ready at a time: rows that arrive have just been written.
    """
    names = letters(workload.streams)
    schemas = {n: t.schema for n, t in zip(names, tables, strict=True)}
    named = list(zip(names, sources(tables), strict=True))
    ready_rows = min(READY_ROWS, rows // (4 * QUARTERS))
    group = size * max(1, min(READY_PUSHES, ready_rows // size))
    taken, pushed, results = [0.0] * QUARTERS, 0, 0
    with query(workload).open(schemas=schemas, rows_only=True) as session:
        push = session.push
        for start in range(0, rows, group):
            ready = [
                (name, arrived(source, at, min(size, rows - at)))
                for at in range(start, min(rows, start + group), size)
                for name, source in named
            ]
            begun = time.thread_time_ns()
            for name, some in ready:
                results += len(push(name, some)[names[0]])
            taken[start * QUARTERS // rows] += time.thread_time_ns() - begun
            pushed += len(ready)
    return taken, pushed, results


def batch(workload: Workload, tables: list[pa.Table], rounds: int) -> float:
    """Nanoseconds per row of the whole tables on one thread."""
    named = dict(zip(letters(workload.streams), tables, strict=True))
    asked, least = query(workload), float("inf")
    for _ in range(rounds + 1):
        start = time.thread_time_ns()
        asked.indices(named, threads=1)
        least = min(least, time.thread_time_ns() - start)
    return least / sum(table.num_rows for table in tables)


def measure(name: str, rounds: int) -> list[Line]:
    """All sizes of one workload."""
    workload = WORKLOADS[name]
    tables = [table.combine_chunks() for table in workload.tables()]
    of_batch = batch(workload, tables, rounds)
    lines = []
    rows = min(table.num_rows for table in tables)
    for size in SIZES[name]:
        some = min(rows, MOST_PUSHES // len(tables) * size)
        least: list[float] = []
        for _ in range(rounds):
            taken, pushed, results = run(workload, tables, size, some)
            least = taken if not least or sum(taken) < sum(least) else least
        if some == rows and results != workload.results:
            raise SystemExit(f"{name}: {results} results, not {workload.results}")
        total, in_all = sum(least), some * len(tables)
        lines.append(
            Line(name, size, in_all, total / pushed, total / in_all, of_batch, least[3] / least[1])
        )
    return lines


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    text = [
        headline(before),
        "",
        "| workload | rows a push | ns a push | ns a row | batch, ns a row | over batch | drift |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    text += [
        f"| {x.workload} | {x.size} | {x.push_ns:,.0f} | {x.row_ns:,.1f} | {x.batch_row_ns:,.1f}"
        f" | {x.row_ns / x.batch_row_ns:.2f} | {x.drift:.2f} |"
        for x in lines
    ]
    return "\n".join([*text, ""])


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.continuous", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SIZES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = [line for name in chosen.names or SIZES for line in measure(name, chosen.rounds)]
    before["load_after"] = load_now()
    figures = [asdict(line) for line in lines]
    keep(chosen.out, "continuous", before, markdown(before, lines), figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
