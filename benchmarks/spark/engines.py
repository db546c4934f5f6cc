"""How each engine joins a workload: DataFrames of row numbers ``i, j[, l]``, out of Parquet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf

from benchmarks.peers import letters
from benchmarks.queries import conditions
from benchmarks.workloads import Workload

Engine = Callable[[Workload, Sequence[Any]], Any]
NUMBERS = ("i", "j", "l")


def query_of(workload: Workload) -> wj.Query:
    """The query of a workload, giving row numbers."""
    streams = [wj.stream(n, time="ts", window=workload.window) for n in letters(workload.streams)]
    select = [s["row"].alias(n) for s, n in zip(streams, NUMBERS, strict=False)]
    on = conditions(workload.kind, streams, workload.limit)
    return wj.join(*streams, on=on, select=select)


def ours(workload: Workload, frames: Sequence[Any], **options: Any) -> Any:
    """`windjoin.spark.join` with nothing chosen by hand, if there are no options."""
    query = query_of(workload)
    return wjs.join(query, dict(zip(query.names, frames, strict=True)), **options)


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
    if workload.kind == "overlap":
        return f"size(array_intersect(a.s, b.s)) >= {int(workload.limit)}"
    if workload.kind == "vectors":
        pairs = (("a", "b"), ("a", "c"), ("b", "c"))
        return " AND ".join(f"{_squares(p, q)} <= {workload.limit!r}D" for p, q in pairs)
    if workload.kind == "images":
        differences = "zip_with(a.v, b.v, (p, q) -> abs(p - q))"
        return f"aggregate({differences}, 0, (sum, d) -> sum + d) <= {workload.limit!r}D"
    raise ValueError(f"no SQL for workloads of kind {workload.kind!r}")


def _squares(left: str, right: str) -> str:
    """The squared distance of two vectors."""
    difference = f"zip_with({left}.v, {right}.v, (p, q) -> (p - q) * (p - q))"
    return f"aggregate({difference}, 0D, (sum, d) -> sum + d)"


def _for_sql(workload: Workload, frames: Sequence[Any]) -> Sequence[Any]:
    """Images as arrays of numbers: SQL has no arithmetic for the bytes of a binary column."""
    if workload.kind != "images":
        return frames
    byte = "cast(conv(hex(substring(v, i, 1)), 16, 10) AS int)"
    numbers = F.expr(f"transform(sequence(1, length(v)), i -> {byte})")
    return [frame.withColumn("v", numbers) for frame in frames]


def naive(workload: Workload, frames: Sequence[Any]) -> Any:
    """The SQL as a user would write it."""
    frames = _for_sql(workload, frames)
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
    if workload.streams == 3:
        return _time_cells(workload, frames)
    frames, width = _for_sql(workload, frames), workload.window
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


def _time_cells(workload: Workload, frames: Sequence[Any]) -> Any:
    """Three streams in buckets of time."""
    width = workload.window
    cell = F.floor(F.col("ts") / width)
    near = F.explode(F.array(*(cell + d for d in (-1, 0, 1))))
    a = frames[0].withColumn("cell", cell).alias("a")
    b, c = (f.withColumn("cell", near).alias(n) for n, f in zip("bc", frames[1:], strict=True))
    where = f"{predicate(workload)} AND {within(['a', 'b', 'c'], width)}"
    joined = a.join(b, F.expr("a.cell = b.cell")).join(c, F.expr("a.cell = c.cell"))
    rows = [F.col(f"{s}.row").alias(n) for s, n in zip("abc", NUMBERS, strict=True)]
    return joined.where(F.expr(where)).select(*rows)


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


def pandas(workload: Workload, frames: Sequence[Any]) -> Any:
    """A join of buckets of time made by hand, and a pandas function that looks at every pair."""
    judge = pandas_udf(JUDGES[workload.kind](workload.limit), "boolean")
    joined = _near_in_time(workload, frames)
    if workload.streams == 3:
        pairs = joined.where(judge(F.col("a.value"), F.col("b.value")))
        return _with_third(workload, pairs, frames[2], judge)
    chosen = joined.where(judge(F.col("a.value"), F.col("b.value")))
    return chosen.select(F.col("a.row").alias("i"), F.col("b.row").alias("j"))


def _near_in_time(workload: Workload, frames: Sequence[Any]) -> Any:
    """All pairs of the first two streams within the window."""
    width, name = workload.window, "s" if workload.kind == "overlap" else "v"
    cell = F.floor(F.col("ts") / width)
    a, b = (frame.withColumnRenamed(name, "value") for frame in frames[:2])
    near = F.explode(F.array(*(cell + d for d in (-1, 0, 1))))
    left, right = a.withColumn("cell", cell).alias("a"), b.withColumn("cell", near).alias("b")
    return left.join(right, F.expr(f"a.cell = b.cell AND {within(['a', 'b'], width)}"))


def _with_third(workload: Workload, pairs: Any, frame: Any, judge: Any) -> Any:
    """Pairs of the first two streams with the third, in buckets of time too."""
    every = [F.col(f"{s}.{n}").alias(f"{s}_{n}") for s in "ab" for n in ("row", "ts", "value")]
    pairs = pairs.select(*every, F.col("a.cell").alias("cell"))
    cell = F.floor(F.col("ts") / workload.window)
    near = F.explode(F.array(*(cell + d for d in (-1, 0, 1))))
    third = frame.withColumnRenamed("v", "value").withColumn("cell", near).alias("c")
    close = [f"abs(p.{s}_ts - c.ts) <= {workload.window}" for s in "ab"]
    both = F.expr(" AND ".join(["p.cell = c.cell", *close]))
    joined = pairs.alias("p").join(third, both)
    for stream in "ab":
        joined = joined.where(judge(F.col(f"p.{stream}_value"), F.col("c.value")))
    rows = ("p.a_row", "p.b_row", "c.row")
    return joined.select(*(F.col(r).alias(n) for r, n in zip(rows, NUMBERS, strict=True)))


def _distances(limit: float) -> Any:
    def judge(left: pd.Series, right: pd.Series) -> pd.Series:
        one, other = np.stack(left), np.stack(right)
        return pd.Series(((one - other) ** 2).sum(axis=1) <= limit)

    return judge


def _common(limit: float) -> Any:
    def judge(left: pd.Series, right: pd.Series) -> pd.Series:
        pairs = zip(left, right, strict=True)
        return pd.Series([len(set(p).intersection(q)) >= limit for p, q in pairs])

    return judge


def _differences(limit: float) -> Any:
    def judge(left: pd.Series, right: pd.Series) -> pd.Series:
        pairs = zip(left, right, strict=True)
        return pd.Series([_sum(p, q) <= limit for p, q in pairs])

    def _sum(p: Any, q: Any) -> int:
        one, other = (np.frombuffer(x, np.uint8).astype(np.int16) for x in (p, q))
        return int(np.abs(one - other).sum())

    return judge


JUDGES = {"overlap": _common, "vectors": _distances, "images": _differences}


ENGINES: dict[str, Engine] = {"windjoin": ours, "cells": cells, "naive": naive, "pandas": pandas}
