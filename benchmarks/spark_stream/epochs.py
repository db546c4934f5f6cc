"""Streaming queries over files, an epoch for each file, and what their epochs take."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import windjoin.spark as wjs
from pyspark.sql import SparkSession

from benchmarks.spark.run import cpu_seconds

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing"
BEGAN = 1_700_000_000  # of the files: they are read in that order


@dataclass(frozen=True)
class Files:
    """A folder for each stream, with a Parquet file for each epoch."""

    folder: Path
    schemas: dict[str, Any]  # as readers take them

    def frames(self, spark: Any) -> dict[str, Any]:
        """Streaming DataFrames that bring a file each an epoch."""
        return {
            name: spark.readStream.schema(schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self.folder / name))
            for name, schema in self.schemas.items()
        }

    def write(self, name: str, epoch: int, rows: pa.Table) -> None:
        """The rows of a stream in an epoch."""
        path = self.folder / name / f"{epoch:05d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        os.utime(path, (BEGAN + epoch, BEGAN + epoch))


@contextmanager
def folder() -> Iterator[Path]:
    """Gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="spark_stream"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@dataclass
class Took:
    """What epochs took: those that count, after the first ones have filled windows."""

    cpu: float = 0.0  # seconds in an epoch, on average
    wall: float = 0.0  # median
    epochs: list[float] = field(default_factory=list)  # seconds, of those that count
    results: int = 0  # of all epochs
    total: float = 0.0  # CPU seconds of all epochs


def measure(joined: Any, place: Path, skip: int, epochs: int, most: float = 900.0) -> Took:
    """Run a query to its end, into a sink that takes all rows and does nothing with them.

    Epochs are timed from outside, by the files with which Spark commits them, so that nothing is
    carried out beside what is measured.
    """
    writer = joined.writeStream.format("noop").trigger(availableNow=True)
    before = cpu_seconds()
    run = writer.option("checkpointLocation", str(place)).start()
    began = time.perf_counter()
    ends: list[float] = []  # of the epochs that count, and of the one before
    used = 0.0
    for epoch in range(epochs):
        while not (place / "commits" / str(epoch)).exists():
            if not run.isActive or time.perf_counter() - began > most:
                break
            time.sleep(0.002)
        if epoch == skip:
            used = cpu_seconds()
        if epoch >= skip:
            ends.append(time.perf_counter())
    after = cpu_seconds()
    if not run.awaitTermination(most):
        run.stop()
    if run.exception() is not None:
        raise SystemExit(str(run.exception())[:2000])
    results = sum(one["sink"]["numOutputRows"] for one in run.recentProgress)
    taken = [later - earlier for earlier, later in pairwise(ends)]
    cpu = (after - used) / max(1, len(taken))
    return Took(cpu, statistics.median(taken), taken, results, after - before)


def session(master: str = "local[2]", **conf: str) -> Any:
    """On two cores of this machine."""
    builder: Any = SparkSession.builder
    builder = builder.master(master).appName("windjoin streaming benchmarks")
    given = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": "-Xss16m",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.numRecentProgressUpdates": "2000",
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{MANAGER}.FileSystemBasedCheckpointFileManager"
        ),
    }
    for key, value in (given | conf).items():
        builder = builder.config(key, value)
    spark = wjs.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def state_store(spark: Any, name: str) -> None:
    """Have Spark's own joins keep their rows in ``hdfs`` or ``rocksdb``."""
    provider = ROCKSDB if name == "rocksdb" else ROCKSDB.replace("RocksDB", "HDFSBacked")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)


def about() -> str:
    """Where this ran."""
    return (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python"
        f" {platform.python_version()}, PySpark {pyspark.__version__}, pyarrow {pa.__version__},"
        f" load {os.getloadavg()[0]:.1f} at the start"
    )


def bytes_of(place: Path, pattern: str = "*") -> int:
    """Of all files below a folder."""
    return sum(path.stat().st_size for path in place.rglob(pattern) if path.is_file())


Engine = Callable[[dict[str, Any]], Any]
Strings = Sequence[str]
