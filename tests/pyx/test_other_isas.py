"""Results do not depend on the instruction set: test files again on those not chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from windjoin.pyx.base import cpu

from tests import large

ROOT = Path(__file__).parents[2]
CHOSEN = os.environ.get("WINDJOIN_ISA") or cpu.supported()[-1]  # what this process tests
OTHERS = [isa for isa in cpu.supported() if isa != CHOSEN]
FILES = [f"tests/kernels/test_{name}.py" for name in ("bands", "boxes", "udf_scan")]


def again(isa: str, *arguments: str) -> str:
    """What a Python of its own prints with an instruction set."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "WINDJOIN_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("isa", OTHERS)
def test_indexes_find_the_same(isa: str) -> None:
    options = ["-q", "-x", "-p", "no:cacheprovider"]
    chosen = "all_combinations or all_pairs or small_blocks"
    told = again(isa, "-m", "pytest", *options, "-k", chosen, *FILES)
    assert " passed" in told


@pytest.mark.parametrize("isa", OTHERS)
def test_large_joins_find_the_same(isa: str) -> None:
    told = again(isa, "-m", "tests.large")
    assert len(told.splitlines()) == len(list(large.shapes()))
