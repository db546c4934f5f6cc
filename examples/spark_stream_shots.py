"""Video shots as they come: streams of vectors joined by ATR and by CTR, with a slow slot.

    python examples/spark_stream_shots.py [folder]

Three channels send pictures of an event, described by vectors; the same shot has close vectors
everywhere.  Each strategy joins the same files epoch by epoch with four slots.  In the middle of
the run one of these takes 16 times as long for whatever it does, as on a machine that swaps:
segments to come go elsewhere, and what has gone there is joined there some epochs later.  Both find
what a batch join of all files finds; what differs is how many rows are copied, and what slots have
to do.  The folder gets a picture.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.spark as wjs
from pyarrow import parquet
from pyspark.sql import SparkSession

CHANNELS = ("north", "south", "west")
STRATEGIES = ("atr", "ctr")
EPOCHS, SECONDS = 14, 10  # of event time in each
SHOTS, WIDTH, SCENES = 3_000, 64, 8_000  # of a channel in an epoch; numbers that describe one
WINDOW, NEAR, SLOTS = "30s", 1.6, 4
SLOW = (0, 16, 3, 12)  # a slot, how much slower it is, from which epoch up to which
TYPE = "time timestamp, shot long, look array<double>"
START = 1_767_600_000_000_000  # microseconds


def write(folder: Path) -> None:
    """A file of each channel for each epoch."""
    scenes = np.random.default_rng(99).normal(size=(SCENES, WIDTH))
    for number, name in enumerate(CHANNELS):
        chance = np.random.default_rng(number)
        (folder / name).mkdir(parents=True)
        for epoch in range(EPOCHS):
            seconds = np.sort(chance.uniform(epoch * SECONDS, (epoch + 1) * SECONDS, SHOTS))
            scene = chance.integers(0, SCENES, SHOTS)
            looks = scenes[scene] + chance.normal(0, 0.13, (SHOTS, WIDTH))
            ends = np.arange(0, looks.size + 1, WIDTH, np.int32)
            rows = {
                "time": pa.array(START + (seconds * 1e6).astype(int), pa.timestamp("us", "UTC")),
                "shot": np.arange(SHOTS) + epoch * SHOTS,
                "look": pa.ListArray.from_arrays(pa.array(ends), pa.array(looks.ravel())),
            }
            path = folder / name / f"{epoch:04d}.parquet"
            parquet.write_table(pa.table(rows), path)
            os.utime(path, (START // 1_000_000 + epoch,) * 2)  # in that order they are read


def alike() -> wj.Query:
    """The same shot in all channels, at most half a minute apart."""
    a, b, c = (wj.stream(name, time="time", window=WINDOW) for name in CHANNELS)
    near = [wj.l2(left["look"], right["look"]) <= NEAR for left, right in ((a, b), (b, c))]
    return wj.join(a, b, c, on=near, select=[a["shot"], b["shot"], c["shot"]])


def run(spark: Any, folder: Path, strategy: str) -> wjs.Run:
    """Join all files, one of each channel an epoch."""
    reader = spark.readStream.schema(TYPE).option("maxFilesPerTrigger", 1)
    begun = wjs.start(
        alike(),
        {name: reader.parquet(str(folder / name)) for name in CHANNELS},
        checkpoint=str(folder / strategy / "checkpoint"),
        path=str(folder / strategy / "found"),
        trigger={"availableNow": True},
        lateness="1s",
        slots=SLOTS,
        strategy=strategy,
        segment="500ms",
    )
    begun.await_termination()
    return begun


def draw(runs: dict[str, wjs.Run], path: Path) -> None:
    """What the slow slot had to do of all, and how many rows were kept, epoch by epoch."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    slow, by, first, last = SLOW
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.5))
    for name, one in runs.items():
        epochs = [done.epoch for done in one.history]
        told = [{load["slot"]: load for load in done.slots} for done in one.history]
        found = [sum(load["results"] for load in t.values()) for t in told]
        share = [100 * t[slow]["results"] / max(1, of) for t, of in zip(told, found, strict=True)]
        most = [1e3 * max(load["seconds"] for load in t.values()) for t in told]
        panels[0].plot(epochs, share, ".-", label=name)
        panels[1].plot(epochs, most, ".-", label=name)
        panels[2].plot(epochs, [done.rows for done in one.history], ".-", label=name)
    titles = (
        f"slot {slow}: percent of the results",
        "ms of the slowest slot",
        "rows kept, with copies",
    )
    for panel, title in zip(panels, titles, strict=True):
        panel.axvspan(first - 0.5, last - 0.5, color="0.9", label=f"{by} times slower")
        panel.set(xlabel="epoch", title=title, ylim=(0, None))
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(path)


def session() -> Any:
    """A session whose workers know which slot is slow."""
    os.environ["WINDJOIN_SLOW"] = " ".join(map(str, SLOW))
    builder: Any = SparkSession.builder
    builder = builder.master(f"local[{SLOTS}]").appName("video shots")
    for key, value in {
        "spark.python.daemon.module": "windjoin.spark.slow_worker",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }.items():
        builder = builder.config(key, value)
    spark = wjs.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def rows_of(table: pa.Table) -> Counter[Any]:
    """Triples."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def main(folder: Path) -> None:
    """The same files by each strategy, and a batch join to compare with."""
    write(folder)
    spark, runs, same = session(), {}, True
    paths = {name: sorted(map(str, (folder / name).glob("*.parquet"))) for name in CHANNELS}
    right = rows_of(alike().run({n: parquet.read_table(p) for n, p in paths.items()}))
    for strategy in STRATEGIES:
        one = runs[strategy] = run(spark, folder, strategy)
        found = spark.read.parquet(str(folder / strategy / "found")).toArrow()
        same = same and rows_of(found) == right
        kept, bytes_ = sum(d.rows for d in one.history), one.status()["log_bytes"]
        print(f"{strategy}: {found.num_rows} triples, {kept} rows kept, {bytes_} bytes in the log")
        one.report(str(folder / f"{strategy}.html"))
    print(f"as a batch join finds them: {same}")
    draw(runs, folder / "spark_stream_shots.png")
    spark.stop()
    if not same:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
