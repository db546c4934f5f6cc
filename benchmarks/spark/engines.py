"""How each engine joins a workload: DataFrames of row numbers ``i, j[, l]``, out of Parquet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import functions as F

from benchmarks.peers import letters
from benchmarks.queries import conditions
from benchmarks.workloads import Workload

Engine = Callable[[Workload, Sequence[Any]], Any]
NUMBERS = ("i", "j", "l")


def ours(workload: Workload, frames: Sequence[Any]) -> Any:
    """`windjoin.spark.join` with nothing chosen by hand."""
    streams = [wj.stream(n, time="ts", window=workload.window) for n in letters(workload.streams)]
    select = [s["row"].alias(n) for s, n in zip(streams, NUMBERS, strict=False)]
    on = conditions(workload.kind, streams, workload.limit)
    query = wj.join(*streams, on=on, select=select)
    return wjs.join(query, dict(zip(query.names, frames, strict=True)))


def within(streams: Sequence[str], window: int) -> str:
    """Every pair within the window, which is the same for all streams."""
    pairs = [(a, b) for n, a in enumerate(streams) for b in streams[n + 1 :]]
    return " AND ".join(
        f"{a}.ts >= {b}.ts - {window} AND {a}.ts <= {b}.ts + {window}" for a, b in pairs
    )


def predicate(workload: Workload) -> str:
    """The predicate as SQL."""
    if workload.kind == "equality":
        names = letters(workload.streams)
        return " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))
    if workload.kind == "band":
        return f"abs(a.x - b.x) <= {workload.limit!r}D"
    if workload.kind == "plane":
        return f"a.x < b.x AND b.y < c.y AND abs(a.x - c.x) <= {workload.limit!r}D"
    raise ValueError(f"no SQL for workloads of kind {workload.kind!r}")


def naive(workload: Workload, frames: Sequence[Any]) -> Any:
    """The SQL as a user would write it."""
    names = letters(workload.streams)
    for name, frame in zip(names, frames, strict=True):
        frame.createOrReplaceTempView(f"bench_{name}")
    rows = ", ".join(f"{n}.row AS {i}" for n, i in zip(names, NUMBERS, strict=False))
    tables = ", ".join(f"bench_{name} {name}" for name in names)
    where = f"{predicate(workload)} AND {within(names, workload.window)}"
    return frames[0].sparkSession.sql(f"SELECT {rows} FROM {tables} WHERE {where}")


def cells(workload: Workload, frames: Sequence[Any]) -> Any:
    """Buckets of time (and value) made by hand, every other stream in each it may meet."""
    if workload.kind == "plane":
        return _plane_cells(workload, frames)
    width = workload.window
    left = frames[0].withColumn("cell", F.floor(F.col("ts") / width))
    near = F.explode(F.array(*(F.floor(F.col("ts") / width) + d for d in (-1, 0, 1))))
    right = frames[1].withColumn("cell", near)
    keys = ["cell"]
    if workload.kind == "band":
        left = left.withColumn("value", F.floor(F.col("x") / workload.limit))
        value = F.floor(F.col("x") / workload.limit)
        right = right.withColumn("value", F.explode(F.array(*(value + d for d in (-1, 0, 1)))))
        keys.append("value")
    same = " AND ".join(f"a.{key} = b.{key}" for key in keys)
    where = f"{same} AND {predicate(workload)} AND {within(['a', 'b'], width)}"
    joined = left.alias("a").join(right.alias("b"), F.expr(where))
    return joined.select(F.col("a.row").alias("i"), F.col("b.row").alias("j"))


def _plane_cells(workload: Workload, frames: Sequence[Any]) -> Any:
    """First a with c in cells of time and value, then b in cells of time."""
    width, limit = workload.window, workload.limit
    time, value = F.floor(F.col("ts") / width), F.floor(F.col("x") / limit)

    def near(cell: Any) -> Any:
        return F.explode(F.array(*(cell + d for d in (-1, 0, 1))))

    a = frames[0].withColumn("cell", time).withColumn("value", value)
    c = frames[2].withColumn("cell", near(time)).withColumn("value", near(value))
    first = a.alias("a").join(
        c.alias("c"),
        F.expr(
            f"a.cell = c.cell AND a.value = c.value AND abs(a.x - c.x) <= {limit!r}D"
            f" AND {within(['a', 'c'], width)}"
        ),
    )
    pairs = first.select(
        *(F.col(f"{s}.{n}").alias(f"{s}{n}") for s in "ac" for n in ("row", "ts", "x", "y")),
        F.col("a.cell").alias("cell"),
    )
    b = frames[1].withColumn("cell", near(time))
    where = (
        "p.cell = b.cell AND p.ax < b.x AND b.y < p.cy"
        f" AND abs(p.ats - b.ts) <= {width} AND abs(p.cts - b.ts) <= {width}"
    )
    joined = pairs.alias("p").join(b.alias("b"), F.expr(where))
    return joined.select(
        F.col("p.arow").alias("i"), F.col("b.row").alias("j"), F.col("p.crow").alias("l")
    )


ENGINES: dict[str, Engine] = {"windjoin": ours, "cells": cells, "naive": naive}
