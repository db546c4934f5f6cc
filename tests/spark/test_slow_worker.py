"""Workers in which a slot is slow: as slow as they were told, and with the same results."""

from __future__ import annotations

import math
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import windjoin as wj
from windjoin.epochs import probing
from windjoin.spark import slow_worker
from windjoin.spark.slow_worker import Slowed, SlowWork

from tests.epochs.cluster import Cluster
from tests.spark import MARKS
from tests.spark.queries import chain, table

pytestmark = MARKS


@pytest.mark.parametrize("text", ["", "0 4 1", "x 4 1 2", "0 4 1 2 3", "0 4 1 2; 1"])
def test_what_is_slow_is_told_in_full(text: str) -> None:
    with pytest.raises(wj.QueryError, match=r"WINDJOIN_SLOW=.*: give slot, factor, first epoch"):
        Slowed.told(text)


def test_what_applies_is_multiplied() -> None:
    every = Slowed.told("all 2 0 9;0 4 3 5")
    times = [
        [math.prod(o.times(slot, epoch) for o in every) for epoch in (2, 3, 9)] for slot in (0, 1)
    ]
    assert times == [[2, 8, 1], [2, 2, 1]]


def test_a_slot_sleeps_in_the_epochs_it_was_told(tmp_path: Path, monkeypatch: Any) -> None:
    tables = {name: table(seed, 90, ordered=True) for seed, name in enumerate("abc")}
    query = chain()
    made = Cluster(query, {n: t.schema for n, t in tables.items()}, str(tmp_path), 1)
    made.start(slots=2, lateness=10**6)
    slept: dict[int, float] = {}
    current: list[int] = []

    def sleep(seconds: float) -> None:
        slept[current[0]] = slept.get(current[0], 0.0) + seconds

    clock = SimpleNamespace(thread_time=time.thread_time, sleep=sleep)  # other threads sleep, too
    monkeypatch.setattr(slow_worker, "time", clock)
    monkeypatch.setattr(SlowWork, "slowed", Slowed.told("1 4 1 2"), raising=False)
    monkeypatch.setattr(probing, "SlotWork", SlowWork)
    found = []
    for epoch in range(3):
        current[:] = [epoch]
        rows = {name: one.slice(30 * epoch, 30) for name, one in tables.items()}
        found += made.epoch(epoch, rows)
    assert list(slept) == [1]
    assert slept[1] > 0
    assert sum(map(len, found)) == query.run(tables).num_rows
