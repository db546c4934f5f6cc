"""Joins of thousands of rows: see `tests.large`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from windjoin.pyx import cpu

from tests import large


@pytest.mark.parametrize("shape", list(large.shapes()))
def test_large_joins_equal_numpy(shape: tuple[str, int, tuple[int, int], int]) -> None:
    assert min(large.compare(*shape)) > 100


@pytest.mark.parametrize("isa", cpu.supported())
def test_large_joins_do_not_depend_on_the_instruction_set(isa: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.large"],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "WINDJOIN_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(list(large.shapes()))
