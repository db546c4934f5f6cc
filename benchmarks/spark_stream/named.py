"""The named workloads as streams: against their batch joins, and against what Spark can do."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import windjoin.spark as wjs
from pyspark.sql import functions as F
from windjoin.spark.joining import cores

from benchmarks.peers import letters
from benchmarks.spark.engines import NUMBERS, ours, query_of
from benchmarks.spark.record import Line, told
from benchmarks.spark.run import answer, cpu_seconds, with_bytes
from benchmarks.spark_stream import equality
from benchmarks.spark_stream.epochs import Files, folder, state_store
from benchmarks.workloads import WORKLOADS, Workload

LARGE = 100_000  # rows of an epoch, about
FEWEST, MOST = 3, 12  # epochs of a workload
TIMES = 4  # how often ours run; the least counts
PEERS = {"W2": "cells", "W5": "cascade"}
Joined = Callable[[Workload, dict[str, Any], Path], Any]


def epochs_of(workload: Workload) -> int:
    """Epochs that are worth what every epoch of Spark costs."""
    rows = sum(table.num_rows for table in workload.tables())
    return min(MOST, max(FEWEST, rows // LARGE))


def files(spark: Any, workload: Workload, place: Path, epochs: int) -> Files:
    """The rows of a workload, those of so many epochs of it."""
    names = letters(workload.streams)
    tables, every = workload.tables(), epochs_of(workload)
    last = max(int(table["ts"][-1].as_py()) for table in tables) + 1
    made = Files(place, {})
    for name, rows in zip(names, tables, strict=True):
        numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
        numbered, times = with_bytes(numbered), rows["ts"].to_numpy()
        borders = [int(times.searchsorted(last * e // every)) for e in range(every + 1)]
        for epoch in range(epochs):
            own = numbered.slice(borders[epoch], borders[epoch + 1] - borders[epoch])
            made.write(name, epoch, own)
        made.schemas[name] = spark.read.parquet(str(place / name)).schema
    return made


def stream(workload: Workload, frames: dict[str, Any], place: Path) -> Any:
    """By `windjoin.spark.stream`, with nothing chosen by hand."""
    return wjs.stream(query_of(workload), frames, log=str(place / "log"))


def timed(frame: Any, name: str) -> Any:
    """With a time as Spark's joins of streams need it."""
    return (
        frame.withColumn("t", F.timestamp_micros("ts")).withWatermark("t", "0 seconds").alias(name)
    )


def between(one: str, other: str, window: int) -> str:
    """Two times within the window."""
    width = f"interval {window} microseconds"
    return f"{one} >= {other} - {width} AND {one} <= {other} + {width}"


def cells(workload: Workload, frames: dict[str, Any], place: Path) -> Any:
    """Cells of the value made by hand: Spark joins streams by equal keys only."""
    value = F.floor(F.col("x") / workload.limit)
    a = timed(frames["a"].withColumn("cell", value), "a")
    near = F.explode(F.array(*(value + d for d in (-1, 0, 1))))
    b = timed(frames["b"].withColumn("cell", near), "b")
    where = f"a.cell = b.cell AND abs(a.x - b.x) <= {workload.limit!r}D"
    joined = a.join(b, F.expr(f"{where} AND {between('a.t', 'b.t', workload.window)}"))
    return joined.select(F.col("a.row").alias("i"), F.col("b.row").alias("j"))


def cascade(workload: Workload, frames: dict[str, Any], place: Path) -> Any:
    """Two of Spark's joins, one after the other."""
    a, b, c = (timed(frames[name], name) for name in "abc")
    pairs = a.join(b, F.expr(f"a.k = b.k AND {between('a.t', 'b.t', workload.window)}"))
    # one event time travels on: Spark refuses two
    both = pairs.select("a.t", "a.k", *(F.col(f"{n}.row").alias(f"{n}_row") for n in "ab"),
                        F.col("b.ts").alias("b_ts")).alias("p")  # fmt: skip
    where = f"p.k = c.k AND {between('p.t', 'c.t', workload.window)}"
    where += f" AND abs(p.b_ts - c.ts) <= {workload.window}"
    rows = [F.col(r).alias(n) for r, n in zip(("a_row", "b_row", "c.row"), NUMBERS, strict=True)]
    return both.join(c, F.expr(where)).select(*rows)


JOINED: dict[str, Joined] = {"stream": stream, "cells": cells, "cascade": cascade}


def joined_epochs(
    spark: Any, workload: Workload, name: str, epochs: int
) -> tuple[float, tuple[int, int]]:
    """CPU seconds of the first epochs, and how many results there were, with their checksum."""
    found: list[tuple[int, int]] = []
    with folder() as place:
        frames = files(spark, workload, place, epochs).frames(spark)
        before = cpu_seconds()
        writer = JOINED[name](workload, frames, place).writeStream.trigger(availableNow=True)
        run = writer.foreachBatch(lambda frame, _: found.append(answer(frame)))
        run.option("checkpointLocation", str(place / "checkpoint")).start().awaitTermination()
        taken = cpu_seconds() - before
    total = reduce(lambda one, other: (one[0] + other[0], one[1] + other[1]), found)
    check(workload, name, epochs, total)
    return taken, total


def whole(spark: Any, workload: Workload, epochs: int) -> tuple[float, tuple[int, int]]:
    """CPU seconds of the batch join of the same files, and what it gives."""
    with folder() as place:
        made = files(spark, workload, place, epochs)
        frames = [spark.read.parquet(str(place / name)) for name in made.schemas]
        before = cpu_seconds()
        total = answer(ours(workload, frames))
        taken = cpu_seconds() - before
    check(workload, "batch join", epochs, total)
    return taken, total


def check(workload: Workload, name: str, epochs: int, total: tuple[int, int]) -> None:
    """Compare with what is known of a whole workload."""
    if epochs == epochs_of(workload) and total != (workload.results, workload.checksum):
        raise SystemExit(f"{workload.name}, {name}: {total}, a wrong answer")


def named(
    spark: Any, name: str, first: int | None = None, times: int = TIMES, warm: int = 0
) -> list[Line]:
    """The first epochs of a workload, as a whole, and by what one would do without windjoin.

    ``warm``: epochs of a small join before each engine, as a query that runs on has compiled what
    it uses, and these have few epochs.
    """
    workload = WORKLOADS[name]
    _warm_up(spark, equality.ours, warm)
    every = epochs_of(workload)
    epochs = first or every
    streams = [joined_epochs(spark, workload, "stream", epochs) for _ in range(times)]
    tables = [whole(spark, workload, epochs) for _ in range(times)]
    (own, total), (batch, right) = min(streams), min(tables)
    same({"stream": total, "batch join": right})
    detail = (
        f"{own:.2f} CPU s in {epochs} of {every} epochs, {batch:.2f} as whole tables;"
        f" {total[0]} results in both"
    )
    lines = [Line(f"{name} as streams, against its batch join: CPU", own / batch, 3,
                  at_least=False, detail=detail)]  # fmt: skip
    print(told(lines[0]), flush=True)
    if name in PEERS:
        peer = PEERS[name]
        state_store(spark, "hdfs")
        _warm_up(spark, equality.theirs, warm)
        joined_epochs(spark, workload, peer, 1)
        other, found = joined_epochs(spark, workload, peer, epochs)
        same({"stream": total, peer: found})
        detail = (
            f"{own:.2f} CPU s in {epochs} of {every} epochs, {other:.2f} by {peer} of Spark's"
            f" joins, HDFS-like state; {total[0]} results in both"
        )
        lines.append(
            Line(f"{name} as streams, against {peer}: CPU", other / own, 10, detail=detail)
        )
    return lines


def _warm_up(spark: Any, engine: Any, epochs: int) -> None:
    if epochs:
        equality.run(spark, equality.Shape(equality.WARM_UP, epochs), engine, cores(spark))


def same(found: dict[str, tuple[int, int]]) -> None:
    """All have the same results."""
    if len(set(found.values())) > 1:
        raise SystemExit(f"different answers: {found}")
