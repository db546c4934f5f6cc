"""Time joins on Spark, Parquet in, count and checksum out.

    python -m benchmarks.spark.run W1 W2 W7 --engines windjoin cells naive --repeat 3

Windjoin and the others take turns.  Cold is the first run of an engine in the session, warm
the best of the others; ratios are of warm wall seconds, CPU seconds are those of the JVM and the
Python workers together.
Every answer is compared with the recorded one.  A run that takes longer than its target, by some
margin, is stopped.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from pyarrow import parquet

from benchmarks.checksum import FACTORS, OFFSET, PRIME
from benchmarks.spark.engines import ENGINES, NUMBERS
from benchmarks.spark.record import Line, record
from benchmarks.spark.sizes import sized
from benchmarks.workloads import FORMAT, WORKLOADS, Workload, cache_folder

FILES = 4  # per stream
PATIENCE, MARGIN = 20.0, 1.1  # an engine is stopped after so many seconds and times its target
TARGETS = {  # how many times as long as windjoin a peer should take, at least
    ("equality", "naive"): 2, ("equality", "cells"): 2,
    ("band", "naive"): 50, ("band", "cells"): 2,
    ("plane", "naive"): 50, ("plane", "cells"): 2,
    ("overlap", "naive"): 20, ("overlap", "cells"): 20, ("overlap", "pandas"): 20,
    ("vectors", "naive"): 20, ("vectors", "cells"): 20, ("vectors", "pandas"): 20,
    ("images", "naive"): 20, ("images", "cells"): 20, ("images", "pandas"): 20,
}  # fmt: skip


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
    for place, column in enumerate(table.schema):
        kind: Any = column.type
        if pa.types.is_fixed_size_list(kind) and kind.value_type == pa.uint8():
            size = kind.list_size
            flat = table.column(place).combine_chunks().flatten()
            whole = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(size),
                table.num_rows,
                [None, flat.buffers()[1]],
                offset=flat.offset // size,
            )
            table = table.set_column(place, column.name, whole.cast(pa.binary()))
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


@dataclass
class Runs:
    """Wall and CPU seconds of every run of an engine."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    stopped: bool = False

    def best(self, seconds: list[float]) -> float:
        """The best of the warm runs."""
        return min(seconds[1:] or seconds)


def limited(spark: Any, seconds: float, run: Callable[[], Any]) -> Any:
    """What ``run`` gives; None if it takes longer, however long Spark needs to end its tasks."""
    outcome: Future[Any] = Future()

    def work() -> None:
        try:
            spark.sparkContext.setJobGroup("benchmark", "benchmark", interruptOnCancel=True)
            outcome.set_result(run())
        except Exception as error:
            outcome.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return outcome.result(seconds)
    except TimeoutError:
        spark.sparkContext.cancelJobGroup("benchmark")
        return None


def turn(spark: Any, workload: Workload, engine: str, runs: Runs, limit: float) -> None:
    """One more run of an engine; the answer is checked."""
    frames = [spark.read.parquet(str(path)) for path in parquet_paths(workload)]
    began, used = time.perf_counter(), cpu_seconds()
    found = limited(spark, limit, lambda: answer(ENGINES[engine](workload, frames)))
    runs.wall.append(time.perf_counter() - began)
    runs.cpu.append(cpu_seconds() - used)
    runs.stopped = found is None
    right = (workload.results, workload.checksum)
    if found is not None and found != right:
        raise SystemExit(f"{workload.name}, {engine}: found {found}, not {right}")


def contest(
    spark: Any, workload: Workload, engines: Sequence[str], repeat: int, limit: float
) -> dict[str, Runs]:
    """Windjoin alone; then in turn with each of the others, until one has to be stopped."""
    every = {engine: Runs() for engine in engines}
    ours = every["windjoin"]
    for _ in range(repeat):
        turn(spark, workload, "windjoin", ours, limit)
    for engine in engines[1:]:
        runs, target = every[engine], TARGETS.get((workload.kind, engine), 0)
        for _ in range(repeat):
            patience = max(PATIENCE, MARGIN * target * ours.best(ours.wall))
            turn(spark, workload, engine, runs, min(limit, patience))
            if runs.stopped:  # its tasks may go on, so whoever comes next needs another session
                return {name: one for name, one in every.items() if one.wall}
            turn(spark, workload, "windjoin", ours, limit)
    return every


def lines_of(workload: Workload, every: dict[str, Runs]) -> list[Line]:
    """Peers against windjoin."""
    ours = every["windjoin"]
    warm, cpu = ours.best(ours.wall), ours.best(ours.cpu)
    lines = []
    for engine, runs in every.items():
        target = TARGETS.get((workload.kind, engine))
        if target is None:
            continue
        ratio = runs.best(runs.wall) / warm
        said = "stopped after" if runs.stopped else "warm"
        detail = (
            f"{said} {runs.best(runs.wall):.2f} s, {runs.best(runs.cpu):.2f} CPU s against"
            f" {warm:.2f} s, {cpu:.2f} CPU s; cold {runs.wall[0]:.2f} s against"
            f" {ours.wall[0]:.2f} s"
        )
        lines.append(Line(f"{workload.name} {engine}", ratio, target, True, runs.stopped, detail))
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of seconds and of ratios to windjoin's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=sorted(WORKLOADS))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--limit", type=float, default=120, help="seconds of one run, at most")
    parser.add_argument("--share", type=float, default=1.0, help="of the time that is joined")
    parser.add_argument("--times", type=int, default=1, help="as much of it, one after the other")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--record", action="store_true", help="write to benchmarks/results/spark")
    given = parser.parse_args(arguments)
    workloads = [sized(WORKLOADS[name], given.share, given.times) for name in given.names]
    for workload in workloads:
        parquet_paths(workload)
    engines = ["windjoin", *(name for name in given.engines if name != "windjoin")]
    spark = session(given.master)
    print(f"{'workload':10} {'engine':10} {'cold s':>8} {'warm s':>8} {'cpu s':>8} {'ratio':>7}")
    for workload in workloads:
        every = contest(spark, workload, engines, given.repeat, given.limit)
        ours = every["windjoin"]
        for engine, runs in every.items():
            warm, cpu = runs.best(runs.wall), runs.best(runs.cpu)
            shown = f"{runs.wall[0]:8.2f} {warm:8.2f} {cpu:8.2f} {warm / ours.best(ours.wall):7.2f}"
            print(f"{workload.name:10} {engine:10} {shown}{' stopped' * runs.stopped}", flush=True)
        if given.record:
            record(f"{workload.name}: {workload.about}", lines_of(workload, every))
    if not any(runs.stopped for runs in every.values()):  # whose tasks would be waited for
        spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
