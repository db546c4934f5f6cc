"""A program that joins all that is in a folder, to be killed while it does."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import windjoin as wj
import windjoin.spark as wjs

from tests.cluster.machines import EXECUTORS, session
from tests.spark.queries import chain

LATENESS = 10**6
SCHEMA = "ts long, k long, w string, x double, n long"


def frames(spark: Any, folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """A file of each stream and epoch."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return {name: reader.parquet(str(folder / name)) for name in names}


def kept() -> wj.Query:
    """Rows of two streams without partners, beside results."""
    a, b = (wj.stream(name, time="ts", window=w) for name, w in (("a", 15), ("b", 30)))
    on = [a["k"] == b["k"], a["x"] < b["x"]]
    return wj.join(a, b, on=on, how="full", select=[a["n"], b["n"].alias("m")])


QUERIES = {"chain": chain, "kept": kept}


def main(master: str, place: str, slots: str, strategy: str, how: str, asked: str) -> None:
    """Join by `start` into Parquet files, or by `stream` into Spark's own."""
    folder = Path(place)
    query = QUERIES[asked]()
    conf = EXECUTORS | {"spark.task.maxFailures": "20", "spark.executor.maxNumFailures": "1000"}
    with session(master, **conf) as spark:
        options: dict[str, Any] = {"lateness": LATENESS, "slots": int(slots), "strategy": strategy}
        given = frames(spark, folder, query.names)
        if how == "start":
            run = wjs.start(
                query, given, checkpoint=str(folder / "checkpoint"), path=str(folder / "out"),
                trigger={"availableNow": True}, **options,
            )  # fmt: skip
            run.await_termination()
            return
        joined = wjs.stream(query, given, log=str(folder / "log"), **options)
        writer = joined.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        writer.start(str(folder / "out")).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
