"""kill -9 at any moment of a session that saves, or saves and spills, loses and doubles nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

QUICK, MANY = 10, 1000


def killed(kills: int) -> dict[str, Any]:
    """What becomes of so many kills."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.faults.killing", str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kills", [QUICK, pytest.param(MANY, marks=pytest.mark.slow)])
def test_kill_9_loses_and_doubles_nothing(kills: int) -> None:
    found = killed(kills)
    assert found["kills"] == kills
    assert found["kills while rows are spilled"] > 0
    assert found["results"] > 0
    assert (found["lost"], found["doubled"]) == (0, 0), found
