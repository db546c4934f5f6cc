"""Two executors: every strategy, processes that are killed, tasks that run twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import functions as F
from windjoin.spark import joining
from windjoin.spark.joining import last_plan

from tests.cluster import MARKS
from tests.cluster.machines import EXECUTORS, SECONDS, Cluster, session
from tests.cluster.watching import attempts, watched, workers
from tests.spark.queries import STRATEGIES, chain, frames, graph, rows_of, table

pytestmark = MARKS
TABLES = {name: table(seed, 600) for seed, name in enumerate("abc")}


@pytest.fixture(scope="module")
def spark(cluster: Cluster, compiled: Path) -> Iterator[Any]:
    conf = EXECUTORS | {"spark.executorEnv.WINDJOIN_CACHE_DIR": str(compiled)}
    with session(cluster.url, **conf) as found:
        yield found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_join_gives_the_rows_of_one_process(spark: Any, strategy: str) -> None:
    query = chain()
    found = wjs.join(query, frames(spark, TABLES, 3), hosts=3, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(TABLES))


def test_hosts_are_the_cores_of_the_cluster(spark: Any) -> None:
    query = chain()
    wjs.join(query, frames(spark, TABLES, 1), strategy="atr")
    planned = last_plan(query)
    assert planned is not None
    assert planned.plan.hosts == 2


def test_functions_are_compiled_once_per_machine(spark: Any, compiled: Path) -> None:
    query = graph()
    small = {name: rows.slice(0, 200) for name, rows in TABLES.items()}
    found = wjs.join(query, frames(spark, small, 2), hosts=4, strategy="atr", segment=30)
    assert rows_of(found) == rows_of(query.run(small))
    kept = {path: path.stat().st_mtime_ns for path in compiled.rglob("*") if path.is_file()}
    assert kept
    again = wjs.join(query, frames(spark, small, 2), hosts=4, strategy="psp")
    assert rows_of(again) == rows_of(query.run(small))
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_tasks_that_fail_at_first_change_nothing(spark: Any, tmp_path: Path) -> None:
    query = chain()
    failing = watched(tmp_path, fail=True)
    given = {
        name: one.mapInArrow(failing, one.schema) for name, one in frames(spark, TABLES, 2).items()
    }
    found = wjs.join(query, given, hosts=3, strategy="groups", skew="ignore")
    assert rows_of(found) == rows_of(query.run(TABLES))
    assert set(attempts(tmp_path)) == {2}
    planned = last_plan(query)
    assert planned is not None
    assert planned.meter is not None
    assert sum(counts["rows"] for counts in planned.meter.packed.values()) == 3 * 600


def killed_while(job: Callable[[], Any], folder: Path, above: int) -> Any:
    """Run a job in a thread of its own; kill -9 a worker, or what is so far above it, at work."""
    thread = ThreadPoolExecutor(1)
    result = thread.submit(job)
    until = time.monotonic() + SECONDS
    while not (seen := workers(folder)):
        assert time.monotonic() < until, "the job never began"
        time.sleep(0.05)
    victim = [seen[0], *seen[0].parents()][above]
    assert ("CoarseGrainedExecutorBackend" in " ".join(victim.cmdline())) == bool(above)
    victim.kill()
    assert not result.done(), "the job ended before anything was killed"
    return result.result(SECONDS)


@pytest.mark.parametrize("above", [0, 2], ids=["worker", "executor"])
@pytest.mark.parametrize(("where", "strategy"), [("source", "groups"), ("result", "ctr")])
def test_processes_that_are_killed_change_nothing(
    spark: Any, tmp_path: Path, above: int, where: str, strategy: str
) -> None:
    # As they come: rows that come in another order each time make Spark give up instead.
    query, given = chain(), {name: spark.createDataFrame(rows) for name, rows in TABLES.items()}
    slow = watched(tmp_path, seconds=0.1)
    if where == "source":
        given["a"] = given["a"].mapInArrow(slow, given["a"].schema)
    joined = wjs.join(query, given, hosts=3, strategy=strategy, skew="ignore")
    if where == "result":
        joined = joined.mapInArrow(slow, joined.schema)
    for path in tmp_path.iterdir():  # of what the plan needed to know
        path.unlink()
    found = killed_while(lambda: rows_of(joined), tmp_path, above)
    assert found == rows_of(query.run(TABLES))
    assert max(attempts(tmp_path)) > 1, "nothing was repeated"


def test_other_versions_are_refused_by_the_first_task(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "version", lambda name: "99.0")
    found = wjs.join(chain(), frames(spark, TABLES, 2), strategy="single")
    with pytest.raises(Exception, match=r"windjoin is 99.0 on the driver but .* on an executor"):
        found.count()


def test_kernel_errors_name_stream_segment_and_host(spark: Any) -> None:
    rows = pa.table({"ts": [1, 2], "k": [1, 1], "z": [2**62, 2**62]})
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], select=[(a["z"] + b["z"]).alias("sum")])
    frame = spark.createDataFrame(rows)
    found = wjs.join(query, {"a": frame, "b": frame}, hosts=2, strategy="atr")
    with pytest.raises(Exception, match=r"does not fit int64.*\(on host \d, last segment\)"):
        found.agg(F.count("*")).collect()
