"""The demo and the examples run as programs and say what they found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import MARKS
from tests.cluster.machines import SECONDS

pytestmark = MARKS
ROOT = Path(__file__).parent.parent.parent
PROGRAMS = {
    "demo": (["-m", "windjoin", "demo", "--spark", "--rows", "2000"], "measured:"),
    "attacks": (["examples/spark_attacks.py"], "alerts per host:"),
    "shots": (["examples/spark_shots.py"], "seconds per host, exchange 2:"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_say_what_they_found(name: str) -> None:
    command, said = PROGRAMS[name]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "imbalance in rows" in done.stdout
