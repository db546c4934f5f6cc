"""Every combination inside the windows is completed at exactly one place, whatever happens."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from windjoin.diffusion.router import Router
from windjoin.diffusion.segments import Segment

from tests.diffusion.invariant import combinations_inside, violations
from tests.diffusion.reference import Row
from tests.diffusion.scenarios import builder, draw_scenario, play, report
from tests.effort import examples

EXACT = ["atr", "atr-fixed", "ctr", "ctr-random", "groups", "psp", "single"]
quick = settings(
    max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
seeds = st.integers(0, 2**63)


@pytest.mark.parametrize("strategy", EXACT)
@given(seed=seeds)
@quick
def test_each_combination_is_completed_at_exactly_one_place(strategy: str, seed: int) -> None:
    rng = random.Random(seed)
    scenario = draw_scenario(rng, strategy)
    cluster = play(rng, scenario, builder(strategy))
    grouped = cluster.router.needs_groups
    assert not violations(cluster.completed, scenario.rows, cluster.windows, same_group=grouped), (
        scenario
    )


@given(seed=seeds)
@quick
def test_random_invents_and_doubles_nothing_but_may_lose(seed: int) -> None:
    rng = random.Random(seed)
    scenario = draw_scenario(rng, "random")
    cluster = play(rng, scenario, builder("random"))
    found = violations(cluster.completed, scenario.rows, cluster.windows)
    assert all(text.startswith("lost") for text in found)


@pytest.mark.parametrize("strategy", [*EXACT, "random"])
@given(seed=seeds)
@settings(max_examples=examples(40), deadline=None)
def test_a_restored_router_decides_as_the_saved_one(strategy: str, seed: int) -> None:
    rng = random.Random(seed)
    scenario = draw_scenario(rng, strategy)
    build = builder(strategy)
    cluster = play(rng, scenario, build)
    saved = json.dumps(cluster.router.state())
    futures = []
    for _ in range(2):
        router = scenario.build(build)
        router.restore(json.loads(saved))
        later = random.Random(seed + 1)
        futures.append([decisions_of_a_border(later, router) for _ in range(6)])
    assert futures[0] == futures[1]


def decisions_of_a_border(rng: random.Random, router: Router) -> tuple[object, ...]:
    """All that a router answers at its next border, and its state afterwards."""
    report(rng, router)
    border = router.stop(router.border)
    router.expire(border)
    moves = router.advance(border)
    stop = router.stop(border)
    segments = [
        Segment(stream, border, stop, rng.randint(0, 9), rng.randint(0, 99))
        for stream in range(len(router.profiles))
    ]
    return border, moves, router.route(segments), json.dumps(router.state())


def test_the_checker_itself_sees_what_is_lost_doubled_or_outside() -> None:
    a, b, far = Row(1, 0, 0), Row(3, 1, 1), Row(9, 1, 2)
    rows, windows = [a, b, far], [2, 0]
    assert list(combinations_inside(rows, windows, same_group=False)) == [(a, b)]
    assert violations(Counter({(a, b): 1}), rows, windows) == []
    assert violations(Counter(), rows, windows) == [f"lost: {(a, b)}"]
    assert violations(Counter({(a, b): 2}), rows, windows) == [f"2 times: {(a, b)}"]
    both = Counter({(a, b): 1, (a, far): 1})
    assert violations(both, rows, windows) == [f"outside: {(a, far)}"]
