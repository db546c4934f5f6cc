"""Routing one border of a 3-way join from Python: loads, placements, paths, voids, expiry.

One round routes three segments, so a route costs a third of it (``microseconds_per_route``).
"""

from __future__ import annotations

import random

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from windjoin.diffusion.load import Usage
from windjoin.diffusion.registry import make
from windjoin.diffusion.router import Router
from windjoin.diffusion.segments import Segment, StreamProfile

LENGTH = 1000
STRATEGIES = ["ctr", "ctr-random", "atr", "psp", "groups", "random", "single"]
AIM = {(8, 60): 15, (100, 60): 40, (256, 240): 80}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("hosts", "segments"), list(AIM))
def test_route(benchmark: BenchmarkFixture, strategy: str, hosts: int, segments: int) -> None:
    selectivity = (0.001, 0.001, 0.001)
    streams = [StreamProfile(n, LENGTH * segments - 1, 0.1, selectivity) for n in "abc"]
    router = make(strategy, streams, hosts, segment_length=LENGTH)
    borders = Borders(router, hosts)
    for _ in range(3 * segments):
        borders.route_next()
    benchmark.group = f"route hosts={hosts} segments={segments}"
    benchmark.pedantic(borders.route_next, rounds=4 * segments)
    benchmark.extra_info["aim"] = AIM[hosts, segments]
    benchmark.extra_info["microseconds_per_route"] = round(
        benchmark.stats.stats.median * 1e6 / 3, 1
    )
    benchmark.extra_info["replication"] = round(router.describe().replication, 2)
    benchmark.extra_info["state_bytes"] = router.describe().state_bytes


class Borders:
    """One border after the other; hosts report at every tenth."""

    def __init__(self, router: Router, hosts: int) -> None:
        self.router, self.hosts = router, hosts
        self.border = 0
        self.rng = random.Random(1)

    def route_next(self) -> None:
        router, border = self.router, self.border
        if border % (10 * LENGTH) == 0:
            router.report({h: Usage(cpu=self.rng.random()) for h in range(self.hosts)})
        router.expire(border)
        router.advance(border)
        stop = border + LENGTH
        router.route([Segment(k, border, stop, 100, 10_000) for k in range(3)])
        self.border = stop
