"""Slots of a continuous join on Spark that shed, each by its own load; here without Spark."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.epochs.deciding import decide, loads_of

from tests.epochs.cluster import Cluster
from tests.shedding_streams import lagging

pytestmark = pytest.mark.filterwarnings("ignore::windjoin.SheddingWarning")
SECONDS = 16


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    made = {}
    for name, columns in lagging(SECONDS, 40, 2.0).items():
        rows = np.arange(len(columns["t"]))
        made[name] = pa.table({**columns, "k": rows % 7 * 0, f"n{name}": rows})
    return made


def joined(**how: Any) -> wj.Query:
    a, b = (wj.stream(name, time="t", window="6s", unit="ms") for name in "ab")
    apart = [a["k"] == b["k"], a["x"] * b["x"] == b["x"] * b["x"]]
    return wj.join(a, b, on=apart, select=[a["na"], b["nb"]], **how)


def carried_out(
    tables: dict[str, pa.Table], root: Path, workers: int = 1, **options: Any
) -> tuple[list[tuple[int, int]], list[dict[str, Any]]]:
    """Results of all epochs, and what slots told in the last."""
    schemas = {name: table.schema for name, table in tables.items()}
    cluster = Cluster(joined(), schemas, str(root), 1)
    cluster.workers = [OrderedDict() for _ in range(workers)]
    cluster.start(**options)
    found, told = [], []
    for epoch in range(SECONDS // 2):
        rows = {}
        for name, table in tables.items():
            times = table["t"].to_numpy()
            first, past = np.searchsorted(times, [2000 * epoch, 2000 * epoch + 2000])
            rows[name] = table.slice(first, past - first)
        for batch in cluster.epoch(epoch, rows):
            found += zip(batch[0].to_pylist(), batch[1].to_pylist(), strict=True)
        log = cluster.job.log
        run = f"{epoch:010d}"
        told = [log.read_json(name) for name in _loads(cluster, run)]
    return found, told


def _loads(cluster: Cluster, epoch: str) -> list[str]:
    root = Path(cluster.job.root)
    return [str(p.relative_to(root)) for p in root.rglob("*.load") if epoch in str(p)]


@pytest.mark.parametrize("strategy", ["groups", "atr", "single"])
def test_slots_shed_each_by_its_own_load(
    tables: dict[str, pa.Table], tmp_path: Path, strategy: str
) -> None:
    options: dict[str, Any] = {"slots": 2, "strategy": strategy}
    truth, _ = carried_out(tables, tmp_path / "exact", **options)
    for per_s, all_of_it in ((1e9, True), (4000.0, False)):
        shed = wj.Shedding(comparisons_per_s=per_s, clock="event", adapt_every="2s")
        found, told = carried_out(tables, tmp_path / f"{per_s}", shed=shed, **options)
        assert len(set(found)) == len(found) > 0
        assert set(found) <= set(truth)
        assert (set(found) == set(truth)) == all_of_it
        shedding = [one["shedding"] for one in told if "shedding" in one]
        assert shedding
        assert all(
            (one["recall"] == 1) == all_of_it for one in shedding if one["missed"] or all_of_it
        )


def test_slots_that_come_to_other_workers_begin_anew(
    tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    truth, _ = carried_out(tables, tmp_path / "exact", slots=2, strategy="atr")
    shed = wj.Shedding(comparisons_per_s=1_000, clock="event", adapt_every="2s")
    found, _ = carried_out(tables, tmp_path / "shed", 3, slots=2, strategy="atr", shed=shed)
    assert len(set(found)) == len(found) > 0
    assert set(found) <= set(truth)


def test_what_was_shed_is_told_over_all_sessions_of_a_slot(
    tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    """Sums grow from epoch to epoch, whichever worker a slot comes to, and also without rows."""
    shed = wj.Shedding(comparisons_per_s=4_000, clock="event", adapt_every="500ms")
    schemas = {name: table.schema for name, table in tables.items()}
    cluster = Cluster(joined(), schemas, str(tmp_path), 1)
    cluster.workers = [OrderedDict() for _ in range(3)]
    cluster.start(slots=2, strategy="atr", shed=shed)
    found, told = 0, list[list[dict[str, Any]]]()
    for epoch in range(SECONDS // 2 + 1):
        rows = {}
        for name, table in tables.items():
            first, past = np.searchsorted(table["t"], [2000 * epoch, 2000 * epoch + 2000])
            rows[name] = table.slice(first, past - first)
        found += sum(map(len, cluster.epoch(epoch, rows)))
        manifest = decide(cluster.job, epoch, cluster.run)
        told.append([load.get("shedding", {}) for load in loads_of(cluster.job.log, manifest)])
    assert cluster.hows["rebuilt"] > 4  # sessions
    assert sum(one["results"] for one in told[-1]) == found > 0
    assert told[-1] == told[-2]  # nothing came
    for earlier, later in pairwise(told):
        for one, other in zip(earlier, later, strict=True):
            for name in ("results", "left_out", "dropped"):
                assert one.get(name, 0) <= other.get(name, 0)
    assert sum(one["missed"] for one in told[-1]) > 0
    for one in told[-1]:
        assert one["recall"] == pytest.approx(one["results"] / (one["results"] + one["missed"]))
        assert one["recall_low"] <= one["recall"] <= one["recall_high"]


@pytest.mark.parametrize(
    ("how", "options", "says"),
    [
        ({}, {"shed": 0.8}, r"shed=0\.8: give a windjoin\.Shedding"),
        ({}, {"clock": lambda: 0.0}, 'slots have no clock of yours; give clock="wall" or "event"'),
        ({"how": "left"}, {}, r"shed= is not for how=.* on Spark"),
        ({}, {"strategy": "ctr"}, "strategy='ctr': partial results travel between slots"),
        ({}, {"basic_window": "1us"}, "shorter than the unit"),
    ],
)
def test_slots_refuse(
    tables: dict[str, pa.Table], tmp_path: Path, how: Any, options: Any, says: str
) -> None:
    schemas = {name: table.schema for name, table in tables.items()}
    asked = {"slots": 2, "strategy": options.pop("strategy", "auto")}
    asked["shed"] = options.pop("shed", None) or wj.Shedding(budget=1, **options)
    with pytest.raises(wj.QueryError, match=says):
        Cluster(joined(**how), schemas, str(tmp_path), 1).start(**asked)
