"""Continuous joins driven epoch by epoch, against the same query in one process."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windjoin as wj
import windjoin.spark as wjs
from windjoin.epochs.stores import below

from tests.epochs.objects import store
from tests.spark import MARKS
from tests.spark.queries import chain, rows_of, table
from tests.spark.test_stream import Sources

pytestmark = MARKS
NOW = {"availableNow": True}


@pytest.fixture
def sources(spark: Any, tmp_path: Path) -> Sources:
    tables = {name: table(seed, 240, ordered=True) for seed, name in enumerate("abc")}
    return Sources(spark, tmp_path, tables)


def test_start_writes_each_result_once(spark: Any, tmp_path: Path, sources: Sources) -> None:
    query = chain()
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    for epoch in range(6):
        sources.add(epoch, epoch / 6, (epoch + 1) / 6)
    options = {"lateness": 400, "path": out, "checkpoint": checkpoint, "trigger": NOW}
    run = wjs.start(query, sources.frames(), slots=2, **options)
    run.add_slots(1)
    assert run.await_termination(300)
    run.stop()
    assert rows_of(spark.read.parquet(out)) == rows_of(query.run(sources.tables))
    status = run.status()
    assert (status["epoch"], status["slots"], status["exception"]) == (5, 3, None)
    assert status["streams"]["a"]["rows"] == 240
    assert sum(status["sessions"].values()) in (2 + 5 * 3, 6 * 3)
    assert status["sessions"]["rebuilt"] >= 2
    assert [host["slot"] for host in run.hosts] == [0, 1, 2]
    assert sum(done.results for done in run.history) == len(spark.read.parquet(out).collect())
    run.report(str(tmp_path / "run.html"))
    assert "slot 2" in (tmp_path / "run.html").read_text()
    told = wjs.explain(query)
    assert "strategy: groups" in told
    assert "last epoch: 5, 3 slots" in told
    held = wjs.read_log(checkpoint)
    assert held.where("stream = 'a'").count() > 0
    kept = wjs.read_log(checkpoint, "a")
    assert {"epoch", "slot", "ts", "k"} <= set(kept.columns)
    assert 0 < kept.count() <= 240
    with pytest.raises(wj.LogError, match=r"stream 'd' is not in the log in"):
        wjs.read_log(checkpoint, "d")


def test_start_hands_epochs_to_a_function(spark: Any, tmp_path: Path, sources: Sources) -> None:
    query = chain()
    found: dict[int, Counter[Any]] = {}

    def sink(frame: Any, epoch: int) -> None:
        if epoch == 1:
            frame.limit(1).count()  # not all slots are asked for
        found[epoch] = rows_of(frame)

    for epoch in range(3):
        sources.add(epoch, epoch / 3, (epoch + 1) / 3)
    options = {"checkpoint": str(tmp_path / "checkpoint"), "trigger": NOW, "lateness": 400}
    wjs.start(query, sources.frames(), sink=sink, slots=2, **options).await_termination()
    assert sum(found.values(), Counter()) == rows_of(query.run(sources.tables))


def test_a_sink_may_leave_results_of_an_outer_join(
    spark: Any, tmp_path: Path, sources: Sources
) -> None:
    """Which rows have had partners is written down all the same."""
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], how="left", select=[a["n"], b["n"].alias("m")])
    found: Counter[Any] = Counter()

    def sink(frame: Any, epoch: int) -> None:
        if epoch == 3:
            found.update(rows_of(frame))
        frame.limit(1).count()

    for epoch in range(4):
        sources.add(epoch, epoch / 4, (epoch + 1) / 4)
    frames = {name: frame for name, frame in sources.frames().items() if name in "ab"}
    options = {"checkpoint": str(tmp_path / "checkpoint"), "trigger": NOW, "lateness": 400}
    assert wjs.start(query, frames, sink=sink, slots=1, **options).await_termination(300)
    tables = {name: sources.tables[name] for name in "ab"}
    assert found
    assert found <= rows_of(query.run(tables))


def test_start_ends_with_the_error_of_a_task(spark: Any, tmp_path: Path, sources: Sources) -> None:
    def sink(frame: Any, epoch: int) -> None:
        raise ValueError("no more of this")

    sources.add(0, 0, 1)
    run = wjs.start(
        chain(), sources.frames(), sink=sink, checkpoint=str(tmp_path / "checkpoint"), trigger=NOW
    )
    with pytest.raises(Exception, match="no more of this"):
        run.await_termination()
    assert "no more of this" in run.status()["exception"]
    with pytest.raises(wj.QueryError, match=r"add_slots\('one'\): give how many more, or fewer"):
        run.add_slots("one")  # type: ignore[arg-type]
    with pytest.raises(wj.InputError, match=r"report: '.*run.html' cannot be written"):
        run.report(str(tmp_path / "none" / "run.html"))
    wrong = {"checkpoint": str(tmp_path / "other"), "sink": "noop", "trigger": {"sometimes": True}}
    with pytest.raises(
        wj.QueryError, match=r"trigger=\{'sometimes': True\} is none that Spark has"
    ):
        wjs.start(chain(), sources.frames(), **wrong)


def test_start_keeps_its_log_and_results_in_a_store(
    spark: Any, tmp_path: Path, sources: Sources
) -> None:
    query = chain()
    with store() as objects:
        place = f"s3://someone:secret@bucket/join{objects.options}"
        log, out = below(place, "log"), below(place, "out")
        options = {"lateness": 400, "checkpoint": str(tmp_path / "checkpoint"), "trigger": NOW}
        for half in range(2):
            for epoch in (2 * half, 2 * half + 1):
                sources.add(epoch, epoch / 4, (epoch + 1) / 4)
            frames = sources.frames()
            run = wjs.start(query, frames, slots=2 + half, log=log, path=out, **options)
            run.await_termination()
        assert "log: s3://bucket/join/log" in wjs.explain(query)
        assert wjs.read_log(log, "b").count() > 0
        found = [
            pq.read_table(io.BytesIO(data))
            for key, data in objects.objects.items()
            if key.endswith(".parquet")
        ]
        with pytest.raises(wj.QueryError, match=r"log='s3://bucket/join/log': with .*stream tasks"):
            wjs.stream(query, sources.frames(), log=log)
    assert rows_of(pa.concat_tables(found)) == rows_of(query.run(sources.tables))


def test_start_refuses_sinks_it_does_not_know(tmp_path: Path) -> None:
    with pytest.raises(wj.QueryError, match="give 'parquet', 'noop' or a function"):
        wjs.start(chain(), {}, checkpoint=str(tmp_path), sink="csv")
    with pytest.raises(wj.QueryError, match="needs path=, the folder of its files"):
        wjs.start(chain(), {}, checkpoint=str(tmp_path))
    with pytest.raises(wj.QueryError, match="a function knows where results go"):
        wjs.start(chain(), {}, checkpoint=str(tmp_path), sink="noop", path="x")
    with pytest.raises(wj.QueryError, match="checkpoint=5: give the path of a folder"):
        wjs.start(chain(), {}, checkpoint=5, sink="noop")  # type: ignore[arg-type]
    with pytest.raises(wj.QueryError, match="trigger=5: give a dictionary, such as"):
        wjs.start(chain(), {}, checkpoint="x", sink="noop", trigger=5)  # type: ignore[arg-type]
    with pytest.raises(wj.LogError, match="there is no log in"):
        wjs.read_log(str(tmp_path))


def test_what_is_no_query_or_session_is_refused() -> None:
    for take in (wjs.join, wjs.stream):
        with pytest.raises(wj.QueryError, match="got 'q' where a query is expected"):
            take("q", {})  # type: ignore[operator]
    with pytest.raises(wj.QueryError, match="explain got 'q' where a query is expected"):
        wjs.explain("q")  # type: ignore[arg-type]
    with pytest.raises(wj.QueryError, match=r"configure got 5; give a SparkSession.builder"):
        wjs.configure(5)  # type: ignore[type-var]
