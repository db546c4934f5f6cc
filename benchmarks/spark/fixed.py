"""What a join of next to nothing costs on a warm session, against an exchange that does nothing.

python -m benchmarks.spark.fixed
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import functions as F

from benchmarks.spark.record import Line, record
from benchmarks.spark.run import session

ROWS, TIMES = 1000, 15


def empty_exchange(frames: list[Any]) -> Any:
    """The same shape with functions that give back what they get."""

    def identity(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    packed = [
        one.withColumn("host", F.lit(0)).mapInArrow(identity, "ts long, k long, host int")
        for one in frames
    ]
    arrived = reduce(lambda one, other: one.unionAll(other), packed)
    sent = arrived.repartitionById(1, F.col("host")).sortWithinPartitions("ts")
    return sent.mapInArrow(identity, "ts long, k long, host int")


def seconds(run: Callable[[], Any]) -> float:
    """The median of several runs, after some that warm up."""
    for _ in range(5):
        run()
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def main() -> None:
    """Print both and their ratio."""
    spark = session("local[2]")
    rng = np.random.default_rng(3)
    frames = {
        name: spark.createDataFrame(
            pa.table({"ts": np.arange(ROWS), "k": rng.integers(0, 500, ROWS)})
        ).cache()
        for name in "abc"
    }
    for frame in frames.values():
        frame.count()
    a, b, c = (wj.stream(name, time="ts", window=10) for name in "abc")
    query = wj.join(a, b, c, on=[a["k"] == b["k"], b["k"] == c["k"]])
    ours = seconds(lambda: wjs.join(query, frames).write.format("noop").mode("append").save())
    given = list(frames.values())
    theirs = seconds(lambda: empty_exchange(given).write.format("noop").mode("append").save())
    print(f"join of 3 x {ROWS} rows {1000 * ours:.0f} ms, empty exchange {1000 * theirs:.0f} ms,"
          f" ratio {ours / theirs:.2f}")  # fmt: skip
    detail = f"{1000 * ours:.0f} ms against {1000 * theirs:.0f} ms"
    line = Line(f"join of 3 x {ROWS} rows", ours / theirs, 2, at_least=False, detail=detail)
    record("Fixed cost, against an exchange that does nothing", [line])
    spark.stop()


if __name__ == "__main__":
    main()
