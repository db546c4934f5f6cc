"""Parquet files joined into a Parquet file, against DuckDB:

    python -m benchmarks.files [--rows N] [--out benchmarks/results/files]

Two files with columns that nobody asks for; equal keys within a window of time.  Each join runs in
a process of its own, which tells its time and the most memory it had.  Where a key has many rows,
DuckDB's plain join makes so many pairs that ``--ways windjoin "duckdb, buckets"`` is enough.  The
files stay in the folder ``--folder``, for the next run; ``--rows`` of each.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.measure import headline, keep, load_now, machine

WINDOW = 60_000  # ms
BATCH = 1_000_000


def path_of(folder: Path, name: str, rows: int, keys: int) -> Path:
    return folder / f"{name}-{rows}-{keys}.parquet"


def make(folder: Path, rows: int, keys: int) -> None:
    """Two files in order of time: ten columns, of which four are asked for."""
    for number, name in enumerate("ab"):
        path = path_of(folder, name, rows, keys)
        if path.exists():
            continue
        random = np.random.default_rng(number)
        start, writer = 0, None
        for _ in range(0, rows, BATCH):
            n = min(BATCH, rows)
            ts = start + np.cumsum(random.integers(0, 3, n))
            start = int(ts[-1])
            columns = {
                "ts": pa.array(ts, pa.timestamp("ms")),
                "k": random.integers(0, keys, n),
                "x": random.random(n),
                "y": random.random(n),
                "name": pa.array(random.integers(0, 10_000, n).astype(str)),
                **{f"extra{k}": random.random(n) for k in range(5)},
            }
            table = pa.table(columns)
            writer = writer or parquet.ParquetWriter(path.with_suffix(".part"), table.schema)
            writer.write_table(table, row_group_size=1 << 18)
        assert writer is not None
        writer.close()
        path.with_suffix(".part").replace(path)


def with_windjoin(a: str, b: str, output: str) -> None:
    import windjoin as wj

    left, right = (wj.stream(n, time="ts", window=f"{WINDOW}ms") for n in "ab")
    q = wj.join(
        left, right, on=[left["k"] == right["k"], left["x"] < right["y"]],
        select=[left["ts"], left["name"], right["ts"], right["y"]],
    )  # fmt: skip
    q.run({"a": a, "b": b}, output=output)


def with_duckdb(a: str, b: str, output: str) -> None:
    """The SQL that one writes first: all pairs of a key are made."""
    duckdb_copies(f"'{a}' a join '{b}' b on a.k = b.k", output)


def with_buckets(a: str, b: str, output: str) -> None:
    """Buckets of time as another key, three copies of each row of one side: made by hand."""
    bucket = f"epoch_ms(ts) // {WINDOW}"
    right = f"select ts, k, y, unnest([{bucket} - 1, {bucket}, {bucket} + 1]) as bucket from '{b}'"
    left = f"select ts, k, x, name, {bucket} as bucket from '{a}'"
    duckdb_copies(f"({left}) a join ({right}) b on a.k = b.k and a.bucket = b.bucket", output)


def duckdb_copies(joined: str, output: str) -> None:
    import duckdb

    base = duckdb.connect()
    base.execute(f"set temp_directory = '{tempfile.gettempdir()}'")
    base.execute("set preserve_insertion_order = false")
    base.execute(
        f"copy (select a.ts as a_ts, a.name as a_name, b.ts as b_ts, b.y as b_y from {joined}"
        f" and a.x < b.y and b.ts between a.ts - interval {WINDOW} milliseconds"
        f" and a.ts + interval {WINDOW} milliseconds) to '{output}' (format parquet)"
    )


WAYS = {"windjoin": with_windjoin, "duckdb": with_duckdb, "duckdb, buckets": with_buckets}


def measured(way: str, a: Path, b: Path) -> dict[str, float]:
    """Seconds, bytes and results of one join in a process of its own."""
    with tempfile.TemporaryDirectory(dir=a.parent) as folder:
        call = [sys.executable, "-m", "benchmarks.files", "--way", way, str(a), str(b), folder]
        ran = subprocess.run(call, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(ran.stderr)
        found = json.loads(ran.stdout.splitlines()[-1])
        found["results"] = parquet.read_metadata(f"{folder}/out.parquet").num_rows
        return dict(found)


def alone(way: str, a: str, b: str, folder: str) -> None:
    """One join, here."""
    __import__(way.partition(",")[0])
    began, used = time.perf_counter(), time.process_time()
    WAYS[way](a, b, f"{folder}/out.parquet")
    told = {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - used,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(told))


def markdown(about: dict[str, Any], figures: dict[str, Any]) -> str:
    """Write the table."""
    versions = ", ".join(f"{name} {about['versions'][name]}" for name in ("duckdb", "pyarrow"))
    ways = figures["ways"]
    text = [
        headline(about),
        f"Python {about['python']}, {versions}; 2 x {figures['rows']:,} rows,"
        f" {figures['keys']:,} keys,"
        f" {figures['file_bytes'] / 1e6:,.0f} MB of Parquet, best of {figures['tries']}.",
        "",
        "| engine | s | CPU s | most resident, MB | results | time / windjoin's |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for way, one in ways.items():
        text.append(
            f"| {way} | {one['seconds']:.2f} | {one['cpu']:.2f} | {one['megabytes']:,.0f}"
            f" | {one['results']:,} | {one['seconds'] / ways['windjoin']['seconds']:.2f} |"
        )
    return "\n".join([*text, ""])


def main() -> None:
    """Measure what each engine takes, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--tries", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "wj-files")
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--way", nargs=4)
    asked = parser.parse_args()
    if asked.way:
        alone(*asked.way)
        return
    asked.folder.mkdir(exist_ok=True)
    make(asked.folder, asked.rows, asked.keys)
    paths = [path_of(asked.folder, name, asked.rows, asked.keys) for name in "ab"]
    before = machine()
    best: dict[str, dict[str, float]] = {}
    for _ in range(asked.tries):
        for way in asked.ways:
            found = measured(way, *paths)
            if way not in best or found["seconds"] < best[way]["seconds"]:
                best[way] = found
    assert len({one["results"] for one in best.values()}) == 1, best
    before["load_after"] = load_now()
    size = sum(path.stat().st_size for path in paths)
    figures: dict[str, Any] = {
        "rows": asked.rows,
        "keys": asked.keys,
        "tries": asked.tries,
        "file_bytes": size,
    }
    figures["ways"] = best
    table = markdown(before, figures)
    if asked.out:
        keep(asked.out, f"files-{asked.keys}-keys", before, table, figures)
    else:
        print(table)


if __name__ == "__main__":
    main()
