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


def test_workers_of_the_daemon_are_slow(monkeypatch: Any) -> None:
    monkeypatch.setenv("WINDJOIN_SLOW", "1 4 2 3")
    conf = {"spark.python.daemon.module": "windjoin.spark.slow_worker"}
    with session("local[1]", **conf) as spark:
        said = [row.said for row in spark.range(1).mapInArrow(paces, "said string").collect()]
    assert said == ["SlowWork (Slowed(slot=1, by=4.0, first=2, last=3),)"]
