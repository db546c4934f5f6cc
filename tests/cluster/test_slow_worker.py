"""Spark starts workers in which a slot is slow, if it is told to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from tests.cluster import MARKS
from tests.cluster.machines import session

pytestmark = MARKS


def paces(batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """What does the work of slots in this worker."""
    from windjoin.epochs import probing

    for _ in batches:
        name = f"{probing.SlotWork.__name__} {getattr(probing.SlotWork, 'slowed', None)}"
        yield pa.RecordBatch.from_pydict({"said": [name]})


def test_workers_of_the_daemon_are_slow() -> None:
    """In each session as it is told: the process of the JVM, and what it knows, stays the same."""
    for by in (4, 7):
        conf = {
            "spark.python.daemon.module": "windjoin.spark.slow_worker",
            "spark.executorEnv.WINDJOIN_SLOW": f"1 {by} 2 3",
        }
        with session("local[1]", **conf) as spark:
            said = [row.said for row in spark.range(1).mapInArrow(paces, "said string").collect()]
        assert said == [f"SlowWork (Slowed(slot=1, by={by}.0, first=2, last=3),)"]
