"""``local-cluster``: executors that the driver itself starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import windjoin.spark as wjs

from tests.cluster import MARKS
from tests.cluster.machines import session
from tests.spark.queries import chain, frames, rows_of, table

pytestmark = MARKS


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with session("local-cluster[2,1,512]", **{"spark.executor.memory": "512m"}) as found:
        yield found


@pytest.mark.parametrize("strategy", ["atr", "ctr"])
def test_join_gives_the_rows_of_one_process(spark: Any, strategy: str) -> None:
    query, tables = chain(), {name: table(seed, 300) for seed, name in enumerate("abc")}
    found = wjs.join(query, frames(spark, tables, 2), hosts=3, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(tables))
