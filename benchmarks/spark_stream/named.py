"""The named workloads as streams: against their batch joins, and against what Spark can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from benchmarks.spark_stream.epochs import Files, folder, measure, state_store
from benchmarks.workloads import WORKLOADS, Workload

LARGE = 100_000  # rows of an epoch, about
FEWEST, MOST = 3, 12  # epochs of a workload
TIMES = 4  # how often ours run; the least counts
PEER_TIMES = 2
PEERS = {"W2": "cells", "W5": "cascade"}
Joined = Callable[[Workload, dict[str, Any], Path], Any]


@dataclass(frozen=True)
class Size:
    """The first epochs of so many into which a workload is cut."""

    epochs: int
    every: int


def epochs_of(workload: Workload, rows: int = LARGE) -> int:
    """Epochs of about so many rows, that are worth what every epoch of Spark costs."""
    count = sum(table.num_rows for table in workload.tables())
    return min(MOST, max(FEWEST, count // rows))


def files(spark: Any, workload: Workload, place: Path, size: Size) -> Files:
    """The rows of a workload, those of some epochs of it."""
    names = letters(workload.streams)
    tables, every = workload.tables(), size.every
    last = max(int(table["ts"][-1].as_py()) for table in tables) + 1
    made = Files(place, {})
    for name, rows in zip(names, tables, strict=True):
        numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
        numbered, times = with_bytes(numbered), rows["ts"].to_numpy()
        borders = [int(times.searchsorted(last * e // every)) for e in range(every + 1)]
        for epoch in range(size.epochs):
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


def streamed(spark: Any, workload: Workload, name: str, size: Size) -> tuple[int, int]:
    """How many results epochs have, with their checksum; and the JVM has compiled what they use."""
    found: list[tuple[int, int]] = []
    with folder() as place:
        frames = files(spark, workload, place, size).frames(spark)
        writer = JOINED[name](workload, frames, place).writeStream.trigger(availableNow=True)
        run = writer.foreachBatch(lambda frame, _: found.append(answer(frame)))
        run.option("checkpointLocation", str(place / "checkpoint")).start().awaitTermination()
    total = reduce(lambda one, other: (one[0] + other[0], one[1] + other[1]), found)
    check(workload, name, size, total)
    return total


def stream_cpu(spark: Any, workload: Workload, name: str, size: Size) -> float:
    """CPU seconds of all epochs, into a sink that takes all rows and does nothing with them."""
    with folder() as place:
        frames = files(spark, workload, place, size).frames(spark)
        joined = JOINED[name](workload, frames, place)
        took = measure(joined, place / "checkpoint", 0, size.epochs)
        print(f"{workload.name}, {name}: {took.total:.2f} CPU s", flush=True)
        return took.total


def whole(spark: Any, workload: Workload, size: Size) -> tuple[int, int]:
    """What the batch join of the same files gives."""
    with folder() as place:
        made = files(spark, workload, place, size)
        frames = [spark.read.parquet(str(place / name)) for name in made.schemas]
        total = answer(ours(workload, frames))
    check(workload, "batch join", size, total)
    return total


def whole_cpu(spark: Any, workload: Workload, size: Size) -> float:
    """CPU seconds of the batch join, into the same sink."""
    with folder() as place:
        made = files(spark, workload, place, size)
        frames = [spark.read.parquet(str(place / name)) for name in made.schemas]
        before = cpu_seconds()
        ours(workload, frames).write.format("noop").mode("overwrite").save()
        taken = cpu_seconds() - before
        print(f"{workload.name}, batch join: {taken:.2f} CPU s", flush=True)
        return taken


def check(workload: Workload, name: str, size: Size, total: tuple[int, int]) -> None:
    """Compare with what is known of a whole workload."""
    if size.epochs == size.every and total != (workload.results, workload.checksum):
        raise SystemExit(f"{workload.name}, {name}: {total}, a wrong answer")


def named(
    spark: Any,
    name: str,
    first: int | None = None,
    times: int = TIMES,
    warm: int = 0,
    rows: int = LARGE,
) -> list[Line]:
    """The first epochs of a workload, as a whole, and by what one would do without windjoin.

    Each engine gives its answer first, which is compared, and is measured then, the least of
    several times.  ``warm``: epochs of a small join before each engine, as a query that runs on has
    compiled what it uses, and these have few epochs.  ``rows``: of an epoch, about.
    """
    workload = WORKLOADS[name]
    every = epochs_of(workload, rows)
    size = Size(first or every, every)
    _warm_up(spark, equality.ours, warm)
    total = streamed(spark, workload, "stream", size)
    same({"stream": total, "batch join": whole(spark, workload, size)})
    own = min(stream_cpu(spark, workload, "stream", size) for _ in range(times))
    batch = min(whole_cpu(spark, workload, size) for _ in range(times))
    count = sum(table.num_rows for table in workload.tables())
    what = f"{name} as streams, {count // every:,} rows an epoch"
    did = f"{own:.2f} CPU s in {size.epochs} of {every} epochs"
    detail = f"{did}, {batch:.2f} as whole tables; {total[0]} results in both"
    lines = [Line(f"{what}, against its batch join: CPU", own / batch, 3,
                  at_least=False, detail=detail)]  # fmt: skip
    print(told(lines[0]), flush=True)
    if name in PEERS:
        peer = PEERS[name]
        state_store(spark, "hdfs")
        _warm_up(spark, equality.theirs, warm)
        same({"stream": total, peer: streamed(spark, workload, peer, size)})
        other = min(stream_cpu(spark, workload, peer, size) for _ in range(PEER_TIMES))
        detail = (
            f"{did}, {other:.2f} by {peer} of Spark's joins, HDFS-like state; {total[0]} results"
            " in both"
        )
        lines.append(Line(f"{what}, against {peer}: CPU", other / own, 10, detail=detail))
    return lines


def _warm_up(spark: Any, engine: Any, epochs: int) -> None:
    if epochs:
        equality.run(spark, equality.Shape(equality.WARM_UP, epochs), engine, cores(spark))


def same(found: dict[str, tuple[int, int]]) -> None:
    """All have the same results."""
    if len(set(found.values())) > 1:
        raise SystemExit(f"different answers: {found}")
