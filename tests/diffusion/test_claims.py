"""A published claim holds only where the difference is larger than the spread over seeds."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

PAPER = Path(__file__).parents[2] / "benchmarks" / "paper"


@pytest.fixture(scope="module")
def claims() -> ModuleType:
    """The module beside the script that is run from its own folder."""
    described = importlib.util.spec_from_file_location("claims", PAPER / "claims.py")
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


def test_what_lies_within_the_spread_is_not_shown(claims: ModuleType) -> None:
    assert claims.verdict([[2.0, 2.4, 1.9]]) == claims.HOLDS
    assert claims.verdict([[-2.0, -2.4, -1.9]]) == claims.FAILS
    for within in ([0.2, 0.1, 0.9], [-0.2, 0.1, 0.3], [-0.1, -0.9], [0.0, 0.0]):
        assert claims.verdict([within]) == claims.OPEN


def test_a_claim_of_several_differences_holds_where_all_do(claims: ModuleType) -> None:
    sure, open_, wrong = [5.0, 5.1], [0.1, 0.5], [-5.0, -5.1]
    assert claims.verdict([sure, sure]) == claims.HOLDS
    assert claims.verdict([sure, open_]) == claims.OPEN
    assert claims.verdict([sure, open_, wrong]) == claims.FAILS


def test_one_number_of_hosts_does_not_show_a_claim_about_all(claims: ModuleType) -> None:
    same, more = ([229.0, 231.0], [230.0, 229.0]), ([100.0, 101.0], [120.0, 121.0])
    found = claims._everywhere("f", "less", "results/s", {4.0: same, 24.0: more})
    assert found.verdict == claims.OPEN
    assert found.why.startswith("shown on 24 hosts; results/s on 4 hosts: 230.0 ± 1.0 against")
    assert claims._everywhere("f", "less", "", {4.0: same}).why.startswith("shown on no number of")


def test_the_table_is_judged_on_the_kept_figures_of_five_seeds(claims: ModuleType) -> None:
    kept = json.loads((PAPER / "results" / "figures.json").read_text())
    assert len(kept) >= 5
    lines = (PAPER / "results" / "claims.md").read_text().splitlines()[2:]
    told = [
        f"| {v.figure} | {v.claim} | {v.verdict} | {v.why} |"
        for v in claims.judge([*kept.values()])
    ]
    assert lines == told
    in_docs = (PAPER.parents[1] / "docs" / "simulator.md").read_text()
    assert all(line in in_docs for line in told)
