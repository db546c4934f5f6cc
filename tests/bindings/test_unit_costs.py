"""What units of work cost is measured, kept, read again, and what plans are costed with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import windjoin as wj
from windjoin.calibrating import as_tables, calibrated, pushed
from windjoin.cli.doctor import _costs
from windjoin.fitting import fitted
from windjoin.kernels.access import Access, kinds
from windjoin.processor import processor_name
from windjoin.shipped_costs import BATCH, LIVE
from windjoin.trials import Trial, trials
from windjoin.unit_costs import UnitCosts, costs_file, unit_costs

from tests.command import windjoin

A, B = (wj.stream(name, time="t", window=10) for name in "ab")
QUERY = wj.join(A, B, on=A["k"] == B["k"])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WINDJOIN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def cost() -> float:
    return wj.plan(QUERY, rates={"a": 50.0, "b": 20.0}).cost


def test_measured_costs_are_kept_and_read() -> None:
    before = cost()
    dear = UnitCosts({**LIVE, "push": 14e6}, BATCH)
    assert dear.keep() == costs_file()
    assert unit_costs() == dear
    assert cost() > 100 * before


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "it cannot be read"),
        ("[]", "it is no file of costs"),
        ('{"live": {"push": -1}, "batch": {}}', "it is no file of costs"),
        ('{"live": {}, "batch": {}, "version": 0}', "it is of version 0, not 1"),
        (
            '{"live": {}, "batch": {}, "version": 1, "processor": "Z80"}',
            "it is of another processor (Z80)",
        ),
    ],
)
def test_what_cannot_be_used_is_told_and_left(folder: Path, content: str, why: str) -> None:
    before = cost()
    folder.mkdir(exist_ok=True)
    (folder / "costs.json").write_text(content)
    with pytest.warns(UserWarning, match=re.escape(why)):
        assert cost() == before
    found = next(_costs())
    assert why in found.found
    assert not found.broken


def test_every_index_has_costs_that_are_shipped() -> None:
    assert all(name in LIVE or "filter" in name for name in LIVE)
    for kind in kinds():
        assert f"{kind.name}: probe" in LIVE
        assert f"{kind.name}: candidate" in BATCH
        if kind.load_for_start is not Access.load_for_start:
            assert f"{kind.name}, later: probe" in BATCH
    assert {"push", "row", "result", "filter: opaque"} <= LIVE.keys()
    assert processor_name()


def few() -> list[Trial]:
    wanted = ("1000 rows, 1000 keys, pushes of 64", "function of 200", "boxes 0.8 of 2000")
    return [trial for trial in trials() if trial.name in wanted]


def test_a_run_says_what_was_done_and_what_it_took() -> None:
    by_key, boxes, _ = few()
    for run in (pushed, as_tables):
        work, spent = run(by_key)
        results = by_key.query.run(by_key.tables).num_rows
        assert spent > 0
        assert work["hash lists: candidate"] == work["result"] > 0
        assert work["given column"] == 4 * work["result"]
        if run is as_tables:
            assert work["result"] == results
        assert run(boxes)[0]["boxes of several values: box"] > 0


def test_costs_are_fitted_to_runs() -> None:
    costs = calibrated(joins=few())
    assert costs.live.keys() >= LIVE.keys()
    assert costs.live["grid of cells: probe"] == LIVE["grid of cells: probe"]  # no join had it
    assert all(value >= 0 for value in (*costs.live.values(), *costs.batch.values()))
    found = fitted([({"a": 1.0, "b": 2.0}, 5.0), ({"a": 2.0, "b": 1.0}, 4.0)], {"c": 7.0}, 1e-9)
    assert found == pytest.approx({"a": 1.0, "b": 2.0, "c": 7.0}, rel=1e-4)
    # costs below 0 are none: the other unit takes all
    found = fitted([({"a": 1.0}, 1.0), ({"a": 1.0, "b": 1.0}, 0.5)], {}, 1e-9)
    assert found["b"] == 0.0


@pytest.mark.slow
def test_the_command_measures_all(folder: Path) -> None:
    done = windjoin("doctor", "--calibrate")
    assert done.returncode == 0, done.stderr
    assert "hash lists: probe" in done.stdout
    kept = json.loads((folder / "costs.json").read_text())
    assert kept["live"].keys() == LIVE.keys()
    assert "measured on this machine" in windjoin("doctor", "--all").stdout
