"""Parquet files joined into a Parquet file, against DuckDB: ``python -m benchmarks.files``.

Two files with columns that nobody asks for; equal keys within a window of time.  Each join runs in
a process of its own, which tells its time and the most memory it had.  The files stay in the folder
``--folder``, for the next run; ``--rows`` of each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

WINDOW = 60_000  # ms
KEYS = 50_000
BATCH = 1_000_000


def make(folder: Path, rows: int) -> None:
    """Two files in order of time: ten columns, of which four are asked for."""
    for number, name in enumerate("ab"):
        path = folder / f"{name}-{rows}.parquet"
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
                "k": random.integers(0, KEYS, n),
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
    import duckdb

    base = duckdb.connect()
    base.execute(f"set temp_directory = '{tempfile.gettempdir()}'")
    base.execute(
        "copy (select a.ts as a_ts, a.name as a_name, b.ts as b_ts, b.y as b_y"
        f" from '{a}' a join '{b}' b on a.k = b.k and a.x < b.y"
        f" and b.ts between a.ts - interval {WINDOW} milliseconds"
        f" and a.ts + interval {WINDOW} milliseconds) to '{output}' (format parquet)"
    )


WAYS = {"windjoin": with_windjoin, "duckdb": with_duckdb}


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
    __import__("windjoin" if way == "windjoin" else "duckdb")
    began, used = time.perf_counter(), time.process_time()
    WAYS[way](a, b, f"{folder}/out.parquet")
    told = {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - used,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(told))


def main() -> None:
    """Print what each engine took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--tries", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "wj-files")
    parser.add_argument("--way", nargs=4)
    asked = parser.parse_args()
    if asked.way:
        alone(*asked.way)
        return
    asked.folder.mkdir(exist_ok=True)
    make(asked.folder, asked.rows)
    paths = [asked.folder / f"{name}-{asked.rows}.parquet" for name in "ab"]
    import duckdb

    size = sum(path.stat().st_size for path in paths) / 1e6
    print(
        f"2 x {asked.rows:,} rows, {size:,.0f} MB of Parquet, best of {asked.tries};"
        f" {os.cpu_count()} cores, Python {platform.python_version()},"
        f" DuckDB {duckdb.__version__}, pyarrow {pa.__version__}"
    )
    best: dict[str, dict[str, float]] = {}
    for _ in range(asked.tries):
        for way in WAYS:
            found = measured(way, *paths)
            if way not in best or found["seconds"] < best[way]["seconds"]:
                best[way] = found
    assert len({one["results"] for one in best.values()}) == 1, best
    for way, one in best.items():
        print(
            f"  {way:9s} {one['seconds']:6.2f} s, {one['cpu']:6.2f} CPU s,"
            f" {one['megabytes']:6,.0f} MB, {one['results']:,} results"
        )


if __name__ == "__main__":
    main()
