"""Random lives of a router: streams, rows, hosts, and all that may happen between borders."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from windjoin.diffusion.atr import ATR
from windjoin.diffusion.ctr import CTR
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.load import Host, Usage
from windjoin.diffusion.registry import make
from windjoin.diffusion.router import Router
from windjoin.diffusion.segments import StreamProfile

from tests.diffusion.reference import ReferenceCluster, Row

ROWS = {2: 44, 3: 30, 4: 18}  # the number of combinations grows with the power of the streams
Build = Callable[..., Router]


@dataclass
class Scenario:
    """Everything random about one run, but for what happens between borders."""

    profiles: tuple[StreamProfile, ...]
    rows: list[Row]
    hosts: list[Host]
    segment_length: int
    start: int
    options: dict[str, Any] = field(default_factory=dict)

    def build(self, build: Build) -> Router:
        """A router for this scenario."""
        return build(self.profiles, self.hosts, segment_length=self.segment_length, **self.options)


def draw_scenario(rng: random.Random, strategy: str) -> Scenario:
    """Ties, bursts, gaps, windows of nothing, segments longer and shorter than windows."""
    n = rng.choice([2, 2, 3, 3, 4])
    start = rng.choice([0, 0, -37, 1000])
    reach = rng.choice([10, 40, 90])
    profiles = tuple(
        StreamProfile(
            name=f"s{k}",
            window=rng.choice([0, 1, 3, 8, 15, 30]),
            rate=rng.choice([0.0, 0.1, 0.5, 2.0]),
            selectivity=tuple(rng.choice([0.01, 0.2, 1.0]) for _ in range(n)),
        )
        for k in range(n)
    )
    times = sorted(start + draw_time(rng, reach) for _ in range(rng.randint(0, ROWS[n])))
    rows = [Row(t, rng.randrange(n), arrival, rng.randrange(8)) for arrival, t in enumerate(times)]
    hosts = [
        Host(number, cpu=rng.choice([0.5, 1.0, 2.0]))
        for number in rng.sample(range(9), rng.randint(1, 6))
    ]
    options: dict[str, Any] = {}
    if strategy in ("atr", "atr-fixed"):
        options = {"master": rng.randrange(n)}
    if strategy in ("ctr", "ctr-random"):
        options = {"copies": rng.randint(1, 3), "warm_up_copies": rng.randint(1, 5)}
    if strategy == "ctr":
        options["crowded"] = rng.choice([1.0, 2.0, float("inf")])
    if strategy == "groups":
        options = {"group_count": 8}
    if strategy == "psp":
        options = {"relocation": rng.choice(["aggressive", "passive"])}
    return Scenario(profiles, rows, hosts, rng.randint(1, 40), start, options)


def draw_time(rng: random.Random, reach: int) -> int:
    """Every other row of a burst falls on one of few times."""
    return rng.choice([3, reach // 2, reach]) if rng.random() < 0.4 else rng.randint(0, reach)


def play(
    rng: random.Random, scenario: Scenario, build: Build, *, events: float = 0.5
) -> ReferenceCluster:
    """Live through the scenario; between two borders things happen with the given probability."""
    cluster = ReferenceCluster(scenario.build(build))
    border = scenario.start
    last = max((row.t for row in scenario.rows), default=border)
    while border <= last:
        while rng.random() < events:
            happen(rng, cluster, scenario, build)
        if rng.random() < 0.7:
            cluster.router.expire(border)
        forget_drained(cluster)
        border = cluster.epoch(border, scenario.rows)
    return cluster


def happen(rng: random.Random, cluster: ReferenceCluster, scenario: Scenario, build: Build) -> None:
    """One thing that may happen between two borders."""
    router = cluster.router
    hosts = router.book.open_hosts
    event = rng.choice(["report", "report", "adapt", "adapt", "join", "leave", "lose", "restore"])
    if event == "report":
        report(rng, router)
    elif event == "adapt":
        adapt(rng, cluster)
    elif event == "join":
        join(rng, cluster)
    elif event == "leave" and len(hosts) > 1:
        cluster.apply(router.remove_host(rng.choice(hosts), lost=False))
    elif event == "lose" and len(hosts) > 1:
        cluster.lose(rng.choice(router.book.hosts).number)  # perhaps one that is leaving
    elif event == "restore":
        cluster.router = reborn(router, scenario, build)


def report(rng: random.Random, router: Router) -> None:
    """Some hosts and perhaps the streams are measured."""
    hosts = [host.number for host in router.book.hosts]
    loads = {
        host: Usage(cpu=rng.random() * 3, memory=rng.random() * 1e9)
        for host in rng.sample(hosts, rng.randint(0, len(hosts)))
    }
    rates = [rng.choice([0.0, 0.3, 4.0]) for _ in router.profiles] if rng.random() < 0.5 else None
    router.report(loads, rates=rates, throughput=rng.random() if rng.random() < 0.5 else None)
    if rng.random() < 0.5:
        router.retreat(rng.sample(hosts, 1))


def adapt(rng: random.Random, cluster: ReferenceCluster) -> None:
    """What the strategy itself can change."""
    router = cluster.router
    if isinstance(router, ATR) and rng.random() < 0.7:
        router.switch_master(rng.randrange(len(router.profiles)))
    elif isinstance(router, ATR | CTR):
        router.change_length(rng.randint(1, 40))
    elif isinstance(router, Groups):
        chosen = rng.sample(range(8), rng.randint(1, 4))
        cluster.apply(router.move_groups(chosen, rng.choice(router.book.open_hosts)))


def join(rng: random.Random, cluster: ReferenceCluster) -> None:
    """A host with a number that is free: perhaps one that left."""
    there = {host.number for host in cluster.router.book.hosts}
    free = [number for number in range(12) if number not in there]
    if free:
        cluster.apply(cluster.router.add_host(Host(rng.choice(free), cpu=rng.choice([0.5, 2.0]))))


def forget_drained(cluster: ReferenceCluster) -> None:
    """A host that drained is switched off: whatever it still holds is gone."""
    router = cluster.router
    closed = {host.number for host in router.book.hosts} - set(router.book.open_hosts)
    for number in sorted(closed):
        if router.drained(number):
            cluster.stored.pop(number, None)


def reborn(router: Router, scenario: Scenario, build: Build) -> Router:
    """Saved as text, built anew, restored."""
    saved = json.dumps(router.state(), sort_keys=True)
    renewed = scenario.build(build)
    renewed.restore(json.loads(saved))
    assert json.dumps(renewed.state(), sort_keys=True) == saved
    return renewed


def builder(strategy: str) -> Build:
    """The registry's way of building."""
    return lambda *args, **options: make(strategy, *args, **options)
