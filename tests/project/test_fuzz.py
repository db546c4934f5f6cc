"""The fuzzer finds what it is for: its oracle is right, and a wrong join is caught and saved."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from tests import api, fast_oracle, fuzz
from tests.cases import Case, tiny
from tests.compare import assert_same_results
from tests.oracle import TIME, Apply, Column, join
from tests.strategies import cases
from tests.values import KINDS


@given(cases())
def test_fast_oracle_equals_the_oracle(case: Case):
    assert_same_results(fuzz.expected_rows(case), join(case.query, case.rows()))


def test_fast_oracle_refuses_what_it_cannot_hold(monkeypatch):
    monkeypatch.setattr(fast_oracle, "MOST_PARTIAL", 15)
    columns = {TIME: (KINDS["int64"], [0] * 4)}
    case = tiny([Apply("<=", (Column(0, TIME), Column(1, TIME)))], columns, columns)
    with pytest.raises(fast_oracle.TooLarge, match="more than 15 combinations of 2 streams"):
        fuzz.expected_rows(case)


def test_large_cases_agree_between_the_oracles():
    for number, small in enumerate(islice(fuzz.drawn_cases(3), 12)):
        large = fuzz.enlarge(small, np.random.default_rng(number))
        cut = Case(tuple(fuzz._half(fuzz._half(s)) for s in large.streams), large.query)
        if len(cut.streams) == 2:
            assert_same_results(fuzz.expected_rows(cut), join(cut.query, cut.rows()))


def test_drawn_cases_are_the_same_for_the_same_seed():
    first, again, other = (
        [repr(case) for case in islice(fuzz.drawn_cases(seed), 9)] for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


class Loser:
    """A query that answers from the oracle, but loses one result."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def indices(self, tables: dict[str, pa.Table], threads: int) -> dict[str, object]:
        rows = fuzz.expected_rows(self.case)[1:]
        columns = np.array(rows, np.int64).reshape(-1, len(self.case.names))
        return {name: columns[:, number] for number, name in enumerate(self.case.names)}


def test_a_lost_result_is_reported_and_saved(monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr(api, "build", Loser)
    assert fuzz.main(["--cases", "5", "--seed", "1", "--folder", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "5 cases" in output.out
    assert "1 missing" in output.err
    assert list(tmp_path.glob("seed1-case*/replay.py"))


@pytest.mark.parametrize(("doubled", "status"), [(0, 0), (1, 1)])
def test_a_saved_case_replays_as_a_program(doubled: int, status: int, tmp_path: Path):
    case = next(case for case in fuzz.drawn_cases(2) if fuzz.expected_rows(case))
    expected = Counter(fuzz.expected_rows(case))
    expected[next(iter(expected))] += doubled
    fuzz.save(case, expected, tmp_path)
    root = Path(__file__).parents[2]
    replay = subprocess.run(
        [sys.executable, str(tmp_path / "replay.py")],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert replay.returncode == status, replay.stderr
    assert not doubled or "1 missing" in replay.stderr
