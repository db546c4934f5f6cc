"""Fragments of a divided query as streaming queries of their own, with files between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs

from tests.spark import MARKS
from tests.spark.queries import chain, rows_of, table
from tests.spark.test_stream import Sources

pytestmark = MARKS
EPOCHS = 4
LATENESS = 40  # ticks: streams come in step, and some rows have no time


def divided(tables: dict[str, pa.Table], closed: str) -> wj.Plan:
    """Streams a and b meet at one site, and what they find meets c at another."""
    sites = {
        "east": wj.Site(streams=["a", "b"]),
        "west": wj.Site(streams=["c"]),
    }
    rates = {"a": 1.0, "b": 1.0, "c": 40.0}
    plan = wj.plan(chain(closed), rates=rates, statistics=tables, sites=sites)
    assert [one.site for one in plan.fragments] == ["east", "west"]
    return plan


def written(joined: Any, folder: Path, name: str) -> None:
    """Whatever has come, from the sources to files in a folder of that name."""
    writer = joined.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / f"{name} checkpoint"))
    writer.option("path", str(folder / name)).start().awaitTermination()


@pytest.mark.parametrize("closed", ["both", "right"])
def test_fragments_run_as_streaming_queries_with_files_between(
    spark: Any, tmp_path: Path, closed: str
) -> None:
    tables = {name: table(seed, 240, ordered=True) for seed, name in enumerate("abc")}
    plan = divided(tables, closed)
    first, last = plan.fragments
    assert [edge.name for edge in last.reads] == [first.name, "c"]
    sources = Sources(spark, tmp_path, tables)
    # partial results are out of order by as much as the longest of their windows
    longest = max(stream.window for stream in first.query.streams)
    for epoch in range(EPOCHS):  # each fragment is stopped and goes on in turn
        sources.add(epoch, epoch / EPOCHS, (epoch + 1) / EPOCHS)
        frames = sources.frames()
        sent = wjs.stream(
            first.query, {name: frames[name] for name in "ab"},
            lateness=LATENESS, slots=2, log=str(tmp_path / "log1"),
        )  # fmt: skip
        written(sent, tmp_path, first.name)
        partial = spark.readStream.schema(sent.schema).parquet(str(tmp_path / first.name))
        found = wjs.stream(
            last.query, {first.name: partial, "c": frames["c"]},
            lateness=LATENESS + longest, slots=2, log=str(tmp_path / "log2"),
        )  # fmt: skip
        written(found, tmp_path, "found")
    expected = rows_of(plan.query.run(tables))
    assert expected.total() > 20
    assert rows_of(spark.read.parquet(str(tmp_path / "found"))) == expected
