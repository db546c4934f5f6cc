"""Two streams with equal keys, as in the workload W1, and bands, which Spark refuses to join."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import functions as F

from benchmarks.spark.record import Line
from benchmarks.spark_stream.epochs import Files, Took, folder, measure, state_store

START = 1_700_000_000_000_000  # microseconds
SCHEMA = "t timestamp, k long, x double"
WINDOW = 10  # epochs
MEASURED = 5  # epochs, at least
WARM_UP = 2_000  # rows of an epoch, before what is measured
WARM_EPOCHS = 100  # first, while the JVM compiles: in a query that runs on, that is soon over


@dataclass(frozen=True)
class Shape:
    """Epochs of so many rows over both streams, each a second of event time."""

    rows: int
    epochs: int
    window: int = WINDOW  # seconds, that is, epochs

    def files(self, place: Path) -> Files:
        """Two results for each row, on average."""
        chance, made = np.random.default_rng(7), Files(place, dict.fromkeys("ab", SCHEMA))
        half, keys = self.rows // 2, max(1, self.rows * self.window // 4)
        for name in "ab":
            for epoch in range(self.epochs):
                times = START + epoch * 1_000_000 + np.sort(chance.integers(0, 1_000_000, half))
                columns = {
                    "t": pa.array(times, pa.timestamp("us", "UTC")),
                    "k": chance.integers(0, keys, half),
                    "x": chance.random(half),
                }
                made.write(name, epoch, pa.table(columns))
        return made

    def query(self, band: bool = False) -> wj.Query:
        """Equal keys, or values that are close."""
        a, b = (wj.stream(name, time="t", window=f"{self.window}s") for name in "ab")
        width = 2.0 / (self.rows * self.window)
        on = abs(a["x"] - b["x"]) <= width if band else a["k"] == b["k"]
        return wj.join(a, b, on=on, select=[a["t"], a["x"], b["x"].alias("y")])


def ours(shape: Shape, frames: dict[str, Any], slots: int, place: Path, band: bool = False) -> Any:
    """By `windjoin.spark.stream`."""
    return wjs.stream(shape.query(band), frames, slots=slots, log=str(place / "log"))


def theirs(shape: Shape, frames: dict[str, Any], *_: Any) -> Any:
    """By Spark's join of two streams."""
    a, b = (frames[name].withWatermark("t", "0 seconds").alias(name) for name in "ab")
    within = f"a.t >= b.t - interval {shape.window} seconds"
    within += f" AND a.t <= b.t + interval {shape.window} seconds"
    joined = a.join(b, F.expr(f"a.k = b.k AND {within}"))
    return joined.select("a.t", "a.x", F.col("b.x").alias("y"))


def nothing(shape: Shape, frames: dict[str, Any], slots: int, *_: Any) -> Any:
    """An epoch that does nothing: an exchange by number and a function that returns its rows."""
    both = frames["a"].unionAll(frames["b"])
    arrived = both.withColumn("h", F.lit(0).cast("int")).repartitionById(slots, F.col("h"))
    return arrived.drop("h").mapInArrow(lambda batches: batches, SCHEMA)


def run(spark: Any, shape: Shape, engine: Any, slots: int, **options: Any) -> Took:
    """One query over files of its own."""
    spark.conf.set("spark.sql.shuffle.partitions", str(slots))
    with folder() as place:
        frames = shape.files(place).frames(spark)
        joined = engine(shape, frames, slots, place, **options)
        skip = min(shape.window + 1, shape.epochs - MEASURED - 1)
        return measure(joined, place / "checkpoint", skip, shape.epochs)


def told(name: str, rows: int, one: Took) -> str:
    """In words."""
    return (
        f"{name} {one.cpu:.3f} CPU s and {one.wall:.3f} s an epoch, {rows / one.wall / 1e6:.2f} M"
        " rows/s"
    )


def best(spark: Any, shape: Shape, engine: Any, slots: int, rounds: int, warm: int) -> Took:
    """The round that took the least CPU, in a JVM that has compiled what is used often."""
    run(spark, Shape(WARM_UP, warm, shape.window), engine, slots)
    every = [run(spark, shape, engine, slots) for _ in range(rounds)]
    for one in every:
        print(told(engine.__name__, shape.rows, one), flush=True)
    return min(every, key=lambda took: took.cpu)


def equality(
    spark: Any, shape: Shape, slots: int, peers: list[str], rounds: int, warm: int
) -> list[Line]:
    """The same rows, joined by each engine in turn."""
    lines, rows = list[Line](), shape.rows
    own = best(spark, shape, ours, slots, rounds, warm)
    what = f"equality, {rows} rows an epoch, window {shape.window} epochs"
    speed = rows / own.wall / 1e6
    lines.append(Line(f"{what}: M rows/s", speed, 1.5, detail=told("windjoin", rows, own)))
    for peer in peers:
        state_store(spark, peer)
        other = best(spark, shape, theirs, slots, rounds, warm)
        if other.results != own.results:
            raise SystemExit(f"{peer}: {other.results} results, {own.results} are right")
        detail = f"{told('windjoin', rows, own)}; {told(peer, rows, other)}"
        name = f"{what}, against Spark's join, {peer} state"
        lines.append(Line(f"{name}: CPU", other.cpu / own.cpu, 8, detail=detail))
        lines.append(Line(f"{name}: wall", other.wall / own.wall, 5, detail=detail))
    return lines


def small(spark: Any, slots: int = 4, warm: int = WARM_EPOCHS) -> list[Line]:
    """An epoch of 100 rows against one that does nothing, in turn."""
    shape, own, idle = Shape(100, 30), [], []
    for engine in (ours, nothing):
        run(spark, Shape(100, warm), engine, slots)
    for _ in range(3):
        own.append(run(spark, shape, ours, slots))
        idle.append(run(spark, shape, nothing, slots))
        print(told("ours", 100, own[-1]), told("nothing", 100, idle[-1]), sep="; ", flush=True)
    ratios = {
        "wall": min(t.wall for t in own) / min(t.wall for t in idle),
        "CPU": min(t.cpu for t in own) / min(t.cpu for t in idle),
    }
    least, none = min(own, key=lambda t: t.cpu), min(idle, key=lambda t: t.cpu)
    detail = f"{told('windjoin', 100, least)}; {told('doing nothing', 100, none)}"
    return [
        Line(f"epoch of 100 rows, {slots} slots, against doing nothing: {name}", ratio, 1.3,
             at_least=False, detail=detail)
        for name, ratio in ratios.items()
    ]  # fmt: skip


def windows(spark: Any, rows: int, slots: int) -> list[Line]:
    """Windows of 100 epochs against windows of one."""
    short = run(spark, Shape(rows, 40, 1), ours, slots)
    long = run(spark, Shape(rows, 140, 100), ours, slots)
    detail = f"{told('1 epoch', rows, short)}; {told('100 epochs', rows, long)}"
    return [
        Line(f"{rows} rows an epoch, window of 100 epochs against 1: {name}", ratio, 3,
             at_least=False, detail=detail)
        for name, ratio in (("CPU", long.cpu / short.cpu), ("wall", long.wall / short.wall))
    ]  # fmt: skip
