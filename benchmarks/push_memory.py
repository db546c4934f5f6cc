"""Memory of a long session of ordinary pushes, beside the bytes of the rows that its window holds.

    python -m benchmarks.push_memory --out benchmarks/results/push_memory

Two streams of W1's five columns, so many rows in all, windows of so many rows each.  The process's
own memory before the session is taken off, with the tables that are pushed made.
"""

from __future__ import annotations

import argparse
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

from benchmarks.measure import headline, keep, load_now, machine
from benchmarks.push_tables import KEYS, SPACING, plain

AT_ONCE = 1024  # rows of a push
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def moved(rows: pa.Table, by: int) -> pa.Table:
    """The same rows so many microseconds later."""
    times = rows.column("ts").cast(pa.int64()).to_numpy() + by
    return rows.set_column(0, "ts", pa.array(times, pa.timestamp("us")))


def measure(rows: int, window: int) -> dict[str, Any]:
    """Push so many rows in all, half of them of each stream."""
    streams = [wj.stream(name, time="ts", window=f"{window * SPACING}us") for name in "ab"]
    joined = wj.join(*streams, on=streams[0]["k"] == streams[1]["k"])
    some = {name: plain(AT_ONCE, np.random.default_rng(n)) for n, name in enumerate("ab")}
    row_bytes = some["a"].nbytes / AT_ONCE
    schemas = {name: table.schema for name, table in some.items()}
    with joined.open(schemas) as session:  # what is loaded once is the process's own
        for name, table in some.items():
            session.push(name, table)
    before, most, results = resident(), 0, 0
    with joined.open(schemas) as session:
        for number in range(rows // (2 * AT_ONCE)):
            for name, table in some.items():
                results += session.push(name, moved(table, number * AT_ONCE * SPACING)).num_rows
            if number % 512 == 0:
                most = max(most, resident() - before)
        state, held = session.state_bytes, session.metrics["streams"]["a"]["state_rows"]
        at_end = resident() - before
    return {
        "rows": rows,
        "window_rows": 2 * held,
        "keys": KEYS,
        "row_bytes": row_bytes,
        "window_bytes": round(2 * held * row_bytes),
        "resident_bytes": at_end,
        "most_resident_bytes": max(most, at_end),
        "state_bytes": state,
        "results": results,
    }


def markdown(before: dict[str, Any], lines: list[dict[str, Any]]) -> str:
    """Write the table."""
    text = [
        headline(before),
        "",
        "| rows pushed | rows in windows | their bytes, MB | resident, MB | at most | state, MB |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for x in lines:
        sizes = ("window_bytes", "resident_bytes", "most_resident_bytes", "state_bytes")
        shown = " | ".join(f"{x[name] / 1e6:,.1f}" for name in sizes)
        text.append(f"| {x['rows']:,} | {x['window_rows']:,} | {shown} |")
    return "\n".join([*text, ""])


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.push_memory", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--window", type=int, default=500_000, help="rows of each stream")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = [measure(chosen.rows, chosen.window)]
    before["load_after"] = load_now()
    keep(chosen.out, "push_memory", before, markdown(before, lines), lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
