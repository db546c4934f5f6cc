"""Streaming joins: `windjoin.spark` against Spark's own join of two streams, in one run.

python -m benchmarks.spark_stream                 all of it; --record writes it down
python -m benchmarks.spark_stream equality --rows 100000 --epochs 20

Each engine gets the same files, one of each stream an epoch, and a sink that takes all rows.  CPU
seconds are those of the driver, the JVM and all Python workers, from the first epoch that counts to
the last; epochs before a window is full do not count.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

WINDOW = 10  # epochs
WARM_UP = 2_000  # rows an epoch, before what is measured
START = 1_700_000_000_000_000  # microseconds
RESULTS = Path(__file__).parent / "results" / "spark_stream"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing"


@dataclass
class Shape:
    """Epochs of so many rows over both streams, each a second of event time."""

    rows: int
    epochs: int
    window: int = WINDOW  # seconds, that is, epochs
    folder: Path = Path()

    def write(self) -> None:
        """Two results for each row, on average."""
        chance = np.random.default_rng(7)
        half = self.rows // 2
        keys = max(1, self.rows * self.window // 4)
        for name in "ab":
            (self.folder / name).mkdir(parents=True)
            for epoch in range(self.epochs):
                times = START + epoch * 1_000_000 + np.sort(chance.integers(0, 1_000_000, half))
                table = pa.table(
                    {
                        "t": pa.array(times, pa.timestamp("us", "UTC")),
                        "k": chance.integers(0, keys, half),
                        "x": chance.random(half),
                    }
                )
                pq.write_table(table, self.folder / name / f"{epoch:05d}.parquet")

    def frames(self, spark: Any) -> dict[str, Any]:
        """A file of each an epoch."""
        reader = spark.readStream.schema("t timestamp, k long, x double")
        reader = reader.option("maxFilesPerTrigger", 1)
        return {name: reader.parquet(str(self.folder / name)) for name in "ab"}

    def query(self, band: bool = False) -> wj.Query:
        """Equal keys, or values that are close."""
        a, b = (wj.stream(name, time="t", window=f"{self.window}s") for name in "ab")
        width = 2.0 / (self.rows * self.window)
        on = abs(a["x"] - b["x"]) <= width if band else a["k"] == b["k"]
        return wj.join(a, b, on=on, select=[a["t"], a["x"], b["x"].alias("y")])


def ours(shape: Shape, frames: dict[str, Any], slots: int) -> Any:
    """Rows of an equality."""
    return wjs.stream(shape.query(), frames, slots=slots, log=str(shape.folder / "log"))


def band(shape: Shape, frames: dict[str, Any], slots: int) -> Any:
    """Rows of a band, which Spark refuses to join as streams."""
    return wjs.stream(shape.query(band=True), frames, slots=slots, log=str(shape.folder / "log"))


def sparks(shape: Shape, frames: dict[str, Any], slots: int) -> Any:
    """Spark's join of the same."""
    a = frames["a"].withWatermark("t", "0 seconds").alias("a")
    b = frames["b"].withWatermark("t", "0 seconds").alias("b")
    within = f"a.t >= b.t - interval {shape.window} seconds"
    within += f" AND a.t <= b.t + interval {shape.window} seconds"
    joined = a.join(b, F.expr(f"a.k = b.k AND {within}"))
    return joined.select("a.t", "a.x", F.col("b.x").alias("y"))


def nothing(shape: Shape, frames: dict[str, Any], slots: int) -> Any:
    """An epoch that does nothing: an exchange by number and a function that returns its rows."""
    both = frames["a"].unionAll(frames["b"])
    arrived = both.withColumn("h", F.lit(0).cast("int")).repartitionById(slots, F.col("h"))
    return arrived.drop("h").mapInArrow(lambda batches: batches, "t timestamp, k long, x double")


@dataclass
class Took:
    """By epoch, those that count."""

    cpu: float
    wall: float
    results: int
    bytes: int


def processor() -> float:
    """CPU seconds of this process and all below it."""
    total, me = 0.0, psutil.Process()
    for one in [me, *me.children(recursive=True)]:
        try:
            used = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system
    return total


def measure(
    spark: Any, shape: Shape, engine: Callable[..., Any], slots: int, most: float = 600.0
) -> Took:
    """One query over all epochs; the first ones fill the window."""
    shape.folder = Path(tempfile.mkdtemp(prefix="spark_stream"))
    counted = {"results": 0}
    marks: list[tuple[float, float]] = []

    def take(frame: Any, epoch: int) -> None:
        counted["results"] += frame.count()
        marks.append((processor(), time.perf_counter()))

    try:
        shape.write()
        joined = engine(shape, shape.frames(spark), slots)
        writer = joined.writeStream.foreachBatch(take).trigger(availableNow=True)
        run = writer.option("checkpointLocation", str(shape.folder / "checkpoint")).start()
        if not run.awaitTermination(most):
            run.stop()
        first = min(shape.window + 1, shape.epochs // 2)
        epochs = [
            (after[0] - before[0], after[1] - before[1])
            for before, after in zip(marks[first:], marks[first + 1 :], strict=False)
        ]
        cpu = (marks[-1][0] - marks[first][0]) / max(1, len(marks) - 1 - first)
        size = sum(p.stat().st_size for p in (shape.folder / "log").rglob("*") if p.is_file())
        return Took(cpu, statistics.median(wall for _, wall in epochs), counted["results"], size)
    finally:
        shutil.rmtree(shape.folder, ignore_errors=True)


def session(**conf: str) -> Any:
    """On two cores."""
    builder: Any = SparkSession.builder
    builder = builder.master("local[2]").appName("windjoin streaming benchmarks")
    given = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{MANAGER}.FileSystemBasedCheckpointFileManager"
        ),
    }
    for key, value in (given | conf).items():
        builder = builder.config(key, value)
    spark = wjs.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def equality(spark: Any, rows: int, epochs: int, slots: int, peers: Sequence[str]) -> list[str]:
    """The same rows, joined by each engine in turn."""
    lines = []
    spark.conf.set("spark.sql.shuffle.partitions", str(slots))
    measure(spark, Shape(WARM_UP, 2 * epochs), ours, slots)  # the JVM compiles what is used often
    took = {"windjoin": measure(spark, Shape(rows, epochs), ours, slots)}
    for peer in peers:
        provider = "HDFSBackedStateStoreProvider" if peer == "hdfs" else "RocksDBStateStoreProvider"
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB.replace(
            "RocksDBStateStoreProvider", provider))  # fmt: skip
        measure(spark, Shape(WARM_UP, 2 * epochs), sparks, slots)
        took[peer] = measure(spark, Shape(rows, epochs), sparks, slots)
    own = took["windjoin"]
    for name, one in took.items():
        lines.append(
            f"equality, {rows} rows an epoch, window {WINDOW} epochs, {slots} slots, {name}:"
            f" {one.cpu:.3f} CPU s, {one.wall:.3f} s an epoch (median), {one.results} results,"
            f" {one.cpu / own.cpu:.1f} x CPU, {one.wall / own.wall:.1f} x wall,"
            f" {rows / one.wall / 1e6:.2f} M rows/s"
        )
        print(lines[-1], flush=True)
        if one.results != own.results:
            raise SystemExit(f"{name}: {one.results} results, {own.results} are right")
    return lines


def small(spark: Any, epochs: int, slots: int) -> list[str]:
    """An epoch of 100 rows against one that does nothing."""
    own = measure(spark, Shape(100, epochs), ours, slots)
    idle = measure(spark, Shape(100, epochs), nothing, slots)
    line = (
        f"100 rows an epoch, {slots} slots: {own.wall * 1e3:.0f} ms, {own.cpu * 1e3:.0f} ms of CPU;"
        f" doing nothing {idle.wall * 1e3:.0f} ms, {idle.cpu * 1e3:.0f} ms:"
        f" {own.wall / idle.wall:.2f} x wall, {own.cpu / idle.cpu:.2f} x CPU"
    )
    print(line, flush=True)
    return [line]


def windows(spark: Any, rows: int, slots: int) -> list[str]:
    """Windows of 100 epochs against windows of one."""
    short = measure(spark, Shape(rows, 40, 1), ours, slots)
    long = measure(spark, Shape(rows, 140, 100), ours, slots)
    line = (
        f"{rows} rows an epoch, {slots} slots: window of 1 epoch {short.cpu * 1e3:.0f} ms of CPU,"
        f" {short.wall * 1e3:.0f} ms; of 100 epochs {long.cpu * 1e3:.0f} ms, {long.wall * 1e3:.0f}"
        f" ms: {long.cpu / short.cpu:.2f} x CPU, {long.wall / short.wall:.2f} x wall"
    )
    print(line, flush=True)
    return [line]


def keyless(spark: Any, rows: int, epochs: int, slots: int) -> list[str]:
    """A band, which Spark refuses."""
    own = measure(spark, Shape(rows, epochs), band, slots)
    line = (
        f"band, {rows} rows an epoch, window {WINDOW} epochs, {slots} slots, windjoin:"
        f" {own.cpu:.3f} CPU s, {own.wall:.3f} s an epoch (median), {own.results} results"
    )
    print(line, flush=True)
    return [line]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = ("equality", "small", "windows", "keyless")
    parser.add_argument("names", nargs="*", default=list(every))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--peers", nargs="*", default=["hdfs", "rocksdb"])
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args(arguments)
    spark = session()
    lines = [
        f"# {platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python"
        f" {platform.python_version()}, PySpark {pyspark.__version__}, pyarrow {pa.__version__},"
        f" load {os.getloadavg()[0]:.1f} at the start"
    ]
    print(lines[0], flush=True)
    if "small" in given.names:
        lines += small(spark, 40, 4)
    if "windows" in given.names:
        lines += windows(spark, 10_000, given.slots)
    if "keyless" in given.names:
        lines += keyless(spark, given.rows, given.epochs, given.slots)
    if "equality" in given.names:
        lines += equality(spark, given.rows, given.epochs, given.slots, given.peers)
    spark.stop()
    if given.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "figures.txt").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
