"""Time joins on Spark, Parquet in, count and checksum out.

    python -m benchmarks.spark.run W1 W2 W7 --engines windjoin cells naive --repeat 3

Cold is the first run of an engine in the session, warm the best of the others.  Ratios are of CPU
seconds (JVM and Python workers together), which other work on the machine disturbs least.
Every answer is compared with the recorded one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet

from benchmarks.checksum import FACTORS, OFFSET, PRIME
from benchmarks.oracle import oracle
from benchmarks.spark.engines import ENGINES, NUMBERS
from benchmarks.workloads import FORMAT, WORKLOADS, Workload, cache_folder

FILES = 4  # per stream


def session(master: str, **conf: str) -> Any:
    """A session with the recommended settings: all engines get them."""
    import windjoin.spark as wjs
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    builder = builder.master(master).appName("windjoin benchmarks")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "6g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        **conf,
    }.items():
        builder = builder.config(key, value)
    spark = wjs.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def part_of(workload: Workload, share: float) -> list[pa.Table]:
    """The rows of the first part of the time: as dense as all, so the work shrinks likewise."""
    tables = workload.tables()
    if share == 1:
        return tables
    last = max(table["ts"][-1].as_py() for table in tables) * share
    return [table.slice(0, int(np.searchsorted(table["ts"], last))) for table in tables]


def shortened(workload: Workload, share: float) -> Workload:
    """A workload over the first part of the time, with the answer of the oracle."""
    if share == 1:
        return workload
    tables = part_of(workload, share)
    answer = oracle(workload.kind, tables, workload.window, workload.limit)
    return replace(workload, name=f"{workload.name}x{share:g}", results=answer[0],
                   checksum=answer[1], generate=lambda: tables)  # fmt: skip


def parquet_paths(workload: Workload) -> list[Path]:
    """The rows with their numbers as folders of Parquet files, written once."""
    folders = [
        cache_folder() / f"{workload.name}-{FORMAT}-{n}.parquet" for n in range(workload.streams)
    ]
    if not all(folder.exists() for folder in folders):
        for table, folder in zip(workload.tables(), folders, strict=True):
            numbered = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
            numbered = with_bytes(numbered)
            folder.mkdir(exist_ok=True)
            size = -(-table.num_rows // FILES)
            for number in range(FILES):
                part = numbered.slice(number * size, size)
                parquet.write_table(part, folder / f"part-{number}.parquet")
    return folders


def with_bytes(table: pa.Table) -> pa.Table:
    """Images as binary, as Spark knows them: it has no unsigned bytes."""
    for place, field in enumerate(table.schema):
        if pa.types.is_fixed_size_list(field.type) and field.type.value_type == pa.uint8():
            size = field.type.list_size
            flat = table.column(place).combine_chunks().flatten()
            whole = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(size),
                table.num_rows,
                [None, flat.buffers()[1]],
                offset=flat.offset // size,
            )
            table = table.set_column(place, field.name, whole.cast(pa.binary()))
    return table


def answer(joined: Any) -> tuple[int, int]:
    """Count and checksum, computed by Spark."""
    from pyspark.sql import functions as F

    value: Any = F.lit(OFFSET).cast("long")
    for factor, name in zip(FACTORS, NUMBERS, strict=False):
        if name in joined.columns:
            value = value + F.col(name) * factor
    value = value % PRIME
    row = joined.agg(F.count("*").alias("n"), F.sum(value * value % PRIME).alias("c")).first()
    return int(row["n"]), int(row["c"] or 0)


def cpu_seconds() -> float:
    """CPU time of this process and all it has started: the JVM and the Python workers."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # ended since it was listed
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


class Runs(NamedTuple):
    """Wall and CPU seconds of every run."""

    wall: list[float]
    cpu: list[float]


def measure(spark: Any, workload: Workload, engine: str, repeat: int) -> Runs:
    """Run an engine several times; the answer is checked each time."""
    runs = Runs([], [])
    for _ in range(repeat):
        frames = [spark.read.parquet(str(path)) for path in parquet_paths(workload)]
        began, used = time.perf_counter(), cpu_seconds()
        found = answer(ENGINES[engine](workload, frames))
        runs.wall.append(time.perf_counter() - began)
        runs.cpu.append(cpu_seconds() - used)
        if found != (workload.results, workload.checksum):
            raise SystemExit(
                f"{workload.name}, {engine}: found {found}, not"
                f" {(workload.results, workload.checksum)}"
            )
    return runs


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of seconds and of ratios to the first engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=sorted(WORKLOADS))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the time that is joined")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args(arguments)
    workloads = [shortened(WORKLOADS[name], given.share) for name in given.names]
    for workload in workloads:
        parquet_paths(workload)
    spark = session(given.master)
    print(f"{'workload':10} {'engine':10} {'cold s':>8} {'warm s':>8} {'cpu s':>8} {'ratio':>7}")
    for workload in workloads:
        base = None
        for engine in given.engines:
            runs = measure(spark, workload, engine, given.repeat)
            warm, cpu = min(runs.wall[1:] or runs.wall), min(runs.cpu[1:] or runs.cpu)
            base = base or cpu
            shown = f"{runs.wall[0]:8.2f} {warm:8.2f} {cpu:8.2f} {cpu / base:7.2f}"
            print(f"{workload.name:10} {engine:10} {shown}", flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
