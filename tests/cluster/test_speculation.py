"""Tasks that run twice at a time, on executors whose homes cannot be written to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import windjoin.spark as wjs

from tests.cluster import MARKS
from tests.cluster.machines import EXECUTORS, Cluster, session
from tests.cluster.watching import attempts, watched
from tests.spark.queries import chain, frames, graph, rows_of, table
from tests.spark.test_stream import Sources, run_all

pytestmark = MARKS
TABLES = {name: table(seed, 300) for seed, name in enumerate("abc")}


@pytest.fixture(scope="module")
def spark(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    file = tmp_path_factory.mktemp("home") / "file"
    file.write_text("no folder can be made below a file")
    conf = EXECUTORS | {
        "spark.executorEnv.WINDJOIN_CACHE_DIR": str(file / "cache"),
        "spark.executorEnv.HOME": str(file / "home"),
        "spark.speculation": "true",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.efficiency.enabled": "false",
    }
    with session(cluster.url, **conf) as found:
        yield found


def test_tasks_that_run_twice_at_a_time_change_nothing(spark: Any, tmp_path: Path) -> None:
    query = chain()
    lagging = watched(tmp_path, lag=0)
    joined = wjs.join(query, frames(spark, TABLES, 2), hosts=3, strategy="ctr")
    late = joined.mapInArrow(lagging, joined.schema)
    assert rows_of(late) == rows_of(query.run(TABLES))
    assert max(attempts(tmp_path)) > 1, "Spark never started a second attempt"


def test_epochs_with_tasks_that_run_twice_at_a_time_give_each_result_once(
    spark: Any, tmp_path: Path
) -> None:
    """Two attempts of the same slot write the same file: the first one's is everybody's."""
    query = chain()
    tables = {name: table(seed, 240, ordered=True) for seed, name in enumerate("abc")}
    sources = Sources(spark, tmp_path, tables)
    for epoch in range(3):
        sources.add(epoch, epoch / 3, (epoch + 1) / 3)
    seen = tmp_path / "seen"
    seen.mkdir()
    log = str(tmp_path / "log")
    joined = wjs.stream(query, sources.frames(), lateness=400, slots=3, strategy="atr", log=log)
    late = joined.mapInArrow(watched(seen, lag=0), joined.schema)
    run_all(late, tmp_path)
    assert rows_of(spark.read.parquet(str(tmp_path / "out"))) == rows_of(query.run(tables))
    assert max(attempts(seen)) > 1, "Spark never started a second attempt"


def test_functions_run_where_no_folder_can_be_written(spark: Any) -> None:
    query = graph()
    found = wjs.join(query, frames(spark, TABLES, 2), hosts=3, strategy="atr", segment=60)
    assert rows_of(found) == rows_of(query.run(TABLES))
