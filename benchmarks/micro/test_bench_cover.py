"""The cover alone, without the cost of a call: microseconds per cover in ``extra_info``."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from windjoin.pyx.routing.cover import CoverProblem

# What the same algorithm takes as a bare C program, microseconds; the aim is twice that.
BARE = {
    (8, 16): 0.03,
    (8, 60): 0.05,
    (8, 240): 0.09,
    (30, 16): 0.18,
    (30, 60): 0.38,
    (30, 240): 0.85,
    (100, 16): 0.36,
    (100, 60): 1.1,
    (100, 240): 2.1,
    (256, 16): 0.76,
    (256, 60): 1.9,
    (256, 240): 5.1,
}


@pytest.mark.parametrize("holders", [2, 8], ids=["2_holders", "8_holders"])
@pytest.mark.parametrize(("hosts", "segments"), list(BARE))
def test_cover(benchmark: BenchmarkFixture, hosts: int, segments: int, holders: int) -> None:
    rng = np.random.default_rng(7)
    held = np.zeros((hosts, segments), dtype=bool)
    for segment in range(segments):
        held[rng.choice(hosts, min(holders, hosts), replace=False), segment] = True
    problem = CoverProblem(held, rng.integers(1, 1025, hosts).astype(np.float64))
    benchmark.group = f"cover hosts={hosts} segments={segments}"
    chosen = benchmark(problem.cover)
    micros = min(problem.seconds(2000) for _ in range(15)) * 1e6
    benchmark.extra_info["hosts_chosen"] = len(chosen)
    benchmark.extra_info["microseconds"] = round(micros, 3)
    benchmark.extra_info["times_bare_c"] = round(micros / BARE[hosts, segments], 2)
