"""Streaming DataFrames joined as one streaming DataFrame, against the same query in one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windjoin as wj
import windjoin.spark as wjs
from windjoin.spark.stages import here

from tests.spark import MARKS
from tests.spark.queries import chain, graph, rows_of, table

pytestmark = MARKS


class Sources:
    """Folders of files that streaming queries read, one file each and epoch."""

    def __init__(self, spark: Any, folder: Path, tables: dict[str, pa.Table]) -> None:
        self.spark, self.folder, self.tables = spark, folder, tables
        self.schemas = {}
        for name, rows in tables.items():
            (folder / name).mkdir()
            self.schemas[name] = spark.createDataFrame(rows.slice(0, 0)).schema

    def add(self, epoch: int, first: float, last: float) -> None:
        """The next rows of all streams."""
        for name, rows in self.tables.items():
            start, stop = int(first * len(rows)), int(last * len(rows))
            path = self.folder / name / f"{epoch:04d}.parquet"
            hidden = path.with_name(f".{path.name}")
            pq.write_table(rows.slice(start, stop - start), hidden)
            os.utime(hidden, (1.7e9 + epoch, 1.7e9 + epoch))  # in that order they are read
            hidden.rename(path)

    def frames(self) -> dict[str, Any]:
        """Streaming DataFrames."""
        return {
            name: self.spark.readStream.schema(schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self.folder / name))
            for name, schema in self.schemas.items()
        }


def run_all(joined: Any, folder: Path) -> Any:
    """All that is there, through Spark's own file sink."""
    query = (
        joined.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


@pytest.mark.parametrize(
    ("build", "strategies"), [(chain, ("groups", "groups")), (graph, ("atr", "ctr"))]
)
def test_stream_gives_the_rows_of_a_batch_join(
    spark: Any, tmp_path: Path, build: Any, strategies: tuple[str, str]
) -> None:
    query = build()
    tables = {name: table(seed, 240, ordered=True) for seed, name in enumerate("abc")}
    sources = Sources(spark, tmp_path, tables)
    for epoch in range(3):
        sources.add(epoch, epoch / 6, (epoch + 1) / 6)
    log = str(tmp_path / "log")
    first, second = strategies
    joined = wjs.stream(query, sources.frames(), lateness=400, slots=3, strategy=first, log=log)
    assert joined.isStreaming
    run_all(joined, tmp_path)
    for epoch in range(3, 6):
        sources.add(epoch, epoch / 6, (epoch + 1) / 6)
    joined = wjs.stream(query, sources.frames(), lateness=400, slots=2, strategy=second, log=log)
    run_all(joined, tmp_path)
    expected = rows_of(query.run(tables))
    assert expected.total() > 20
    assert rows_of(spark.read.parquet(str(tmp_path / "out"))) == expected


def test_stream_takes_streaming_frames_only(spark: Any) -> None:
    frames = dict.fromkeys("abc", spark.createDataFrame(table(1, 5)))
    with pytest.raises(wj.InputError, match="all frames are batch DataFrames; give a streaming"):
        wjs.stream(chain(), frames)
    with pytest.raises(wj.QueryError, match=r"is computed by a streaming query only"):
        here()


def test_stream_takes_batch_frames_among_streaming_ones(spark: Any, tmp_path: Path) -> None:
    query = chain()
    tables = {name: table(seed, 120, ordered=True) for seed, name in enumerate("abc")}
    sources = Sources(spark, tmp_path, tables)
    for epoch in range(3):
        sources.add(epoch, epoch / 3, (epoch + 1) / 3)
    given = sources.frames() | {"b": spark.createDataFrame(tables["b"])}
    log = str(tmp_path / "log")
    told = wjs.explain(query, given, lateness=400, slots=2, log=log)
    assert "slots: 2, exchanges: 1" in told
    assert "strategy: groups" in told  # which have no length of time
    assert "lateness: 400 ticks" in told
    assert "no epoch was done yet" in told
    joined = wjs.stream(query, given, lateness=400, slots=2, log=log, memory="2kB")
    assert "memory of a slot: 2,000 bytes" in wjs.explain(query)
    done = run_all(joined, tmp_path)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert rows_of(found) == rows_of(query.run(tables))
    assert found.columns == joined.columns
    told = [one["observedMetrics"]["windjoin a b c"] for one in done.recentProgress]
    assert [sorted(slot["slot"] for slot in epoch["slots"]) for epoch in told] == [[0, 1]] * 3
    slots = [slot for epoch in told for slot in epoch["slots"]]
    assert sum(slot["results"] for slot in slots) == found.count()
    assert all(slot["cpu"] > 0 and slot["worker"] > 0 and slot["bytes"] > 0 for slot in slots)
    assert {slot["how"] for slot in told[-1]["slots"]} == {"in parts"}
