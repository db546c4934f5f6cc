"""Video shots: vectors of three channels that are alike at the same time, by ATR and by CTR.

    python examples/spark_shots.py

Three channels send pictures of an event, described by vectors; the same shot has close vectors
everywhere.  Both strategies give the same rows: what differs is how many rows travel, and what
every host has to do.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import SparkSession

CHANNELS = ("north", "south", "west")
SHOTS, WIDTH, SCENES = 6_000, 40, 400
WINDOW, NEAR, HOSTS = "20s", 1.2, 6


def channel(number: int) -> pa.Table:
    """Shots in time, with more of them in the second half: hosts must not suffer from that."""
    rng = np.random.default_rng(number)
    scenes = np.random.default_rng(99).normal(size=(SCENES, WIDTH))
    seconds = np.sort(np.append(rng.uniform(0, 300, SHOTS // 4), rng.uniform(300, 600, SHOTS)))
    scene = ((seconds / 600 * SCENES).astype(int) + rng.integers(0, 3, len(seconds))) % SCENES
    vectors = scenes[scene] + rng.normal(0, 0.13, (len(scene), WIDTH))
    stamps = pa.array((seconds * 1e6).astype(np.int64)).cast(pa.timestamp("us", "UTC"))
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(0, vectors.size + 1, WIDTH, np.int32)), pa.array(vectors.ravel())
    )
    return pa.table({"time": stamps, "shot": np.arange(len(scene)), "look": lists})


def bars(title: str, values: list[float]) -> str:
    """A plot in text: a line for each host."""
    most = max([*values, 1e-9])
    lines = [f"  {n} {'#' * round(50 * v / most):50} {v:,.2f}" for n, v in enumerate(values)]
    return "\n".join([title, *lines])


def main() -> None:
    """Generate, join twice, and show the loads."""
    a, b, c = (wj.stream(name, time="time", window=WINDOW) for name in CHANNELS)
    near = [wj.l2(left["look"], right["look"]) <= NEAR for left, right in ((a, b), (b, c), (a, c))]
    query = wj.join(a, b, c, on=near, select=[a["shot"], b["shot"], c["shot"]])
    spark = wjs.configure(SparkSession.builder.master("local[*]")).getOrCreate()
    frames = {name: spark.createDataFrame(channel(n)) for n, name in enumerate(CHANNELS)}
    for strategy in ("atr", "ctr"):
        began = time.perf_counter()
        found = wjs.join(query, frames, hosts=HOSTS, strategy=strategy).count()
        print(f"\n{strategy}: {found:,} triples in {time.perf_counter() - began:.1f} s")
        print(wjs.explain(query))
        for exchange in sorted({host["exchange"] for host in wjs.measured(query)}):
            seconds = [h["seconds"] for h in wjs.measured(query) if h["exchange"] == exchange]
            print(bars(f"seconds per host, exchange {exchange}:", seconds))
    spark.stop()


if __name__ == "__main__":
    main()
