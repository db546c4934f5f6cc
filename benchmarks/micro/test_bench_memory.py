"""Memory of a first run in a process of its own; the baseline is what goes in and comes out."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.bounds import MEMORY_BOUND

PROGRAM = """
import json, sys
from benchmarks.bounds import memory_of
print(json.dumps(memory_of(sys.argv[1], int(sys.argv[2]))))
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["W1s", "keys_hot", "times_equal"])
def test_peak(benchmark: Any, name: str, threads: int) -> None:
    benchmark.group = f"memory of {name}"
    command = [sys.executable, "-c", PROGRAM, name, str(threads)]

    def run() -> dict[str, int]:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found: dict[str, int] = json.loads(done.stdout)
        return found

    found = benchmark.pedantic(run, rounds=1)
    benchmark.extra_info.update(found)
    benchmark.extra_info["bytes"] = found["output"]
    quotient = (found["input"] + found["peak"]) / (found["input"] + found["output"])
    benchmark.extra_info["quotient"] = round(quotient, 2)
    assert quotient <= MEMORY_BOUND
