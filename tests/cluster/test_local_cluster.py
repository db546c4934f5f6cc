"""``local-cluster``: executors that the driver itself starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import windjoin as wj
import windjoin.spark as wjs

from tests.cluster import MARKS
from tests.cluster.machines import session
from tests.spark.queries import STRATEGIES, chain, frames, rows_of, table

pytestmark = MARKS


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with session("local-cluster[2,1,512]", **{"spark.executor.memory": "512m"}) as found:
        yield found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_join_gives_the_rows_of_one_process(spark: Any, strategy: str) -> None:
    query, tables = chain(), {name: table(seed, 300) for seed, name in enumerate("abc")}
    found = wjs.join(query, frames(spark, tables, 2), hosts=3, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(tables))


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp"])
def test_rows_that_come_as_they_may_are_told_apart(spark: Any, strategy: str) -> None:
    a, b, c = (wj.stream(name, time="ts", window=12) for name in "abc")
    on = [a["k"] == b["k"], b["k"] == c["k"]]
    query = wj.join(a, b, c, on=on, select=[a["n"], b["n"], c["n"]], exclude_self=True)
    own = table(5, 200)
    frame = spark.createDataFrame(own).repartition(7).repartition(3)
    found = wjs.join(query, dict.fromkeys("abc", frame), hosts=3, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(dict.fromkeys("abc", own)))
