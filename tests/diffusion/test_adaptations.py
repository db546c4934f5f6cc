"""Everything that adapts, interleaved in any order: the invariant holds after every border."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from windjoin.diffusion.atr import ATR
from windjoin.diffusion.ctr import CTR
from windjoin.diffusion.groups import Groups
from windjoin.diffusion.load import Usage

from tests.diffusion.invariant import violations
from tests.diffusion.reference import ReferenceCluster, Row
from tests.diffusion.scenarios import (
    Scenario,
    builder,
    draw_scenario,
    forget_drained,
    join,
    reborn,
    report,
)
from tests.effort import examples

STRATEGIES = ["atr", "ctr", "groups", "psp", "single", "ctr-random"]
numbers = st.integers(0, 1 << 30)


class Adaptations(RuleBasedStateMachine):
    """One cluster that lives on while anything may be asked of its router."""

    cluster: ReferenceCluster
    scenario: Scenario

    @initialize(seed=numbers, strategy=st.sampled_from(STRATEGIES))
    def begin(self, seed: int, strategy: str) -> None:
        self.strategy = strategy
        self.scenario = draw_scenario(random.Random(seed), strategy)
        self.cluster = ReferenceCluster(self.scenario.build(builder(strategy)))
        self.border = self.scenario.start
        self.rows: list[Row] = []

    @rule(offsets=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 3)), max_size=5))
    def border_with_rows(self, offsets: list[tuple[int, int]]) -> None:
        router = self.cluster.router
        stop = router.stop(self.border)
        n = len(router.profiles)
        arriving = [
            Row(min(self.border + offset, stop - 1), stream % n, len(self.rows) + k, offset % 8)
            for k, (offset, stream) in enumerate(offsets)
        ]
        self.rows += arriving
        self.border = self.cluster.epoch(self.border, arriving)
        self.check()

    @rule()
    def expire(self) -> None:
        self.cluster.router.expire(self.border)
        forget_drained(self.cluster)

    @rule(seed=numbers)
    def report(self, seed: int) -> None:
        report(random.Random(seed), self.cluster.router)

    @rule(host=numbers, load=st.floats(0, 10))
    def one_host_is_loaded(self, host: int, load: float) -> None:
        hosts = self.cluster.router.book.hosts
        self.cluster.router.report({hosts[host % len(hosts)].number: Usage(cpu=load)})

    @precondition(lambda self: isinstance(self.cluster.router, ATR))
    @rule(stream=st.integers(0, 3), again=st.integers(0, 3))
    def switch_master_twice(self, stream: int, again: int) -> None:
        router = self.cluster.router
        assert isinstance(router, ATR)
        for chosen in (stream, again):
            router.switch_master(chosen % len(router.profiles))

    @precondition(lambda self: isinstance(self.cluster.router, ATR | CTR))
    @rule(length=st.integers(1, 40))
    def change_length(self, length: int) -> None:
        router = self.cluster.router
        assert isinstance(router, ATR | CTR)
        router.change_length(length)

    @precondition(lambda self: isinstance(self.cluster.router, Groups))
    @rule(groups=st.lists(st.integers(0, 7), max_size=8), host=numbers)
    def move_groups(self, groups: list[int], host: int) -> None:
        router = self.cluster.router
        assert isinstance(router, Groups)
        hosts = router.book.open_hosts
        self.cluster.apply(router.move_groups(groups, hosts[host % len(hosts)]))

    @rule(seed=numbers)
    def host_joins(self, seed: int) -> None:
        join(random.Random(seed), self.cluster)

    @precondition(lambda self: len(self.cluster.router.book.open_hosts) > 1)
    @rule(host=numbers)
    def host_leaves(self, host: int) -> None:
        hosts = self.cluster.router.book.open_hosts
        chosen = hosts[host % len(hosts)]
        self.cluster.apply(self.cluster.router.remove_host(chosen, lost=False))

    @precondition(lambda self: len(self.cluster.router.book.open_hosts) > 1)
    @rule(host=numbers)
    def host_is_lost(self, host: int) -> None:
        hosts = self.cluster.router.book.hosts
        self.cluster.lose(hosts[host % len(hosts)].number)

    @rule()
    def save_and_restore(self) -> None:
        build = builder(self.strategy)
        self.cluster.router = reborn(self.cluster.router, self.scenario, build)

    def check(self) -> None:
        router = self.cluster.router
        assert not violations(
            self.cluster.completed, self.rows, router.windows, same_group=router.needs_groups
        )


Adaptations.TestCase.settings = settings(
    max_examples=examples(80), stateful_step_count=25, deadline=None
)
TestAdaptations = Adaptations.TestCase
