"""A program that joins all that is in a folder, to be killed while it does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import windjoin.spark as wjs

from tests.cluster.machines import EXECUTORS, session
from tests.spark.queries import chain

SCHEMA = "ts long, k long, w string, x double, n long"


def frames(spark: Any, folder: Path) -> dict[str, Any]:
    """A file of each stream and epoch."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return {name: reader.parquet(str(folder / name)) for name in "abc"}


def main(master: str, place: str, slots: str, strategy: str, how: str) -> None:
    """Join by `start` into Parquet files, or by `stream` into Spark's own."""
    folder = Path(place)
    query = chain()
    conf = EXECUTORS | {"spark.task.maxFailures": "20", "spark.executor.maxNumFailures": "1000"}
    with session(master, **conf) as spark:
        options: dict[str, Any] = {"lateness": 10**6, "slots": int(slots), "strategy": strategy}
        given = frames(spark, folder)
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
