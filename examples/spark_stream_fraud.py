"""Calls that are followed by trades: streaming DataFrames joined epoch by epoch, with a restart.

    python examples/spark_stream_fraud.py [folder]

Somebody calls a broker, and within a minute trades in what the call was about, for more than usual.
Files arrive while the join runs; it is stopped half-way and goes on with two slots more.  What it
found is what a batch join of all files finds.  The folder gets ``run.html`` and a picture.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.spark as wjs
from pyarrow import parquet
from pyspark.sql import SparkSession

EPOCHS, SECONDS = 24, 1_000_000  # microseconds
ROWS = {"calls": 1_500, "trades": 4_000}  # an epoch of 20 seconds
START = 1_767_600_000 * SECONDS
TYPES = {"calls": "ts timestamp, who long, share int, id long"}
TYPES["trades"] = f"{TYPES['calls']}, amount double"


def write(folder: Path, first: int, last: int) -> None:
    """The files of some epochs; rows are up to three seconds out of order."""
    chance = np.random.default_rng(first)
    for epoch in range(first, last):
        for name, count in ROWS.items():
            times = START + epoch * 20 * SECONDS + np.linspace(0, 20 * SECONDS, count).astype(int)
            times += chance.integers(-3 * SECONDS, 1, count)
            columns = {
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "who": chance.integers(0, 3_000, count),
                "share": pa.array(chance.integers(0, 40, count), pa.int32()),
                "id": np.arange(count) + epoch * 10_000,
            }
            if name == "trades":
                columns["amount"] = chance.exponential(1000.0, count)
            (folder / name).mkdir(parents=True, exist_ok=True)
            parquet.write_table(pa.table(columns), folder / name / f"{epoch:04d}.parquet")


def suspicious() -> wj.Query:
    """A large trade of the caller in what the call was about, at most a minute after it."""
    calls = wj.stream("calls", time="ts", window="60s")
    trades = wj.stream("trades", time="ts", window="0s", where=lambda t: t["amount"] > 800.0)
    same = [calls["who"] == trades["who"], calls["share"] == trades["share"]]
    chosen = [calls["id"].alias("call"), trades["id"].alias("trade"), trades["amount"]]
    return wj.join(calls, trades, on=same, select=chosen)


def run(spark: Any, query: wj.Query, folder: Path, slots: int) -> wjs.Run:
    """Join all files that are there."""
    reader = {
        n: spark.readStream.schema(t).option("maxFilesPerTrigger", 1) for n, t in TYPES.items()
    }
    frames = {name: one.parquet(str(folder / name)) for name, one in reader.items()}
    begun = wjs.start(
        query,
        frames,
        checkpoint=str(folder / "checkpoint"),
        path=str(folder / "found"),
        lateness="5s",
        rejected=str(folder / "rejected"),
        trigger={"availableNow": True},
        slots=slots,
    )
    begun.await_termination()
    return begun


def draw(runs: list[wjs.Run], path: Path) -> None:
    """CPU milliseconds of each slot, epoch by epoch."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3.5))
    for slot in range(max(len(one.hosts) for one in runs)):
        done = [
            (epoch.epoch, 1e3 * load["cpu"])
            for one in runs
            for epoch in one.history
            for load in epoch.slots
            if load["slot"] == slot
        ]
        axes.plot(*zip(*done, strict=True), marker=".", label=f"slot {slot}")
    axes.set(xlabel="epoch", ylabel="CPU, ms", ylim=(0, None))
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main(folder: Path) -> None:
    """Two runs, and a batch join to compare with."""
    builder: Any = SparkSession.builder
    builder = builder.master("local[2]").appName("fraud")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = wjs.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    query = suspicious()
    write(folder, 0, EPOCHS // 2)
    runs = [run(spark, query, folder, 2)]
    write(folder, EPOCHS // 2, EPOCHS)
    runs.append(run(spark, query, folder, 4))
    print(wjs.explain(query))
    found = spark.read.parquet(str(folder / "found")).toArrow()
    batch = {name: spark.read.parquet(str(folder / name)) for name in ROWS}
    expected = wjs.join(query, batch).toArrow()
    order: Any = [("call", "ascending"), ("trade", "ascending")]
    same = found.sort_by(order).equals(expected.sort_by(order).cast(found.schema))
    print(f"{found.num_rows} suspicious trades, as a batch join finds them: {same}")
    runs[-1].report(str(folder / "run.html"))
    draw(runs, folder / "spark_stream_fraud.png")
    spark.stop()
    if not same:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
