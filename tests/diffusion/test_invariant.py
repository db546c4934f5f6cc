"""Every combination inside the windows is completed at exactly one place, whatever happens."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invariant import combinations_inside, violations
from scenarios import builder, draw_scenario, play

from windjoin.diffusion.reference import Row

EXACT = ["atr", "atr-fixed", "ctr", "ctr-random", "groups", "single"]
quick = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**63)


@pytest.mark.parametrize("strategy", EXACT)
@given(seed=seeds)
@quick
def test_each_combination_is_completed_at_exactly_one_place(strategy: str, seed: int) -> None:
    rng = random.Random(seed)
    scenario = draw_scenario(rng, strategy)
    cluster = play(rng, scenario, builder(strategy))
    grouped = cluster.router.needs_groups
    assert not violations(
        cluster.completed, scenario.rows, cluster.windows, same_group=grouped
    ), scenario


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
@settings(max_examples=60, deadline=None)
def test_a_restored_router_decides_as_the_saved_one(strategy: str, seed: int) -> None:
    rng = random.Random(seed)
    scenario = draw_scenario(rng, strategy)
    build = builder(strategy)
    cluster = play(rng, scenario, build)
    saved = json.dumps(cluster.router.state())
    futures = []
    for _ in range(2):
        cluster.router = scenario.build(build)
        cluster.router.restore(json.loads(saved))
        later = random.Random(seed + 1)
        border = cluster.router.border
        answers = []
        for _ in range(6):
            border = cluster.router.stop(border)
            moves = cluster.router.advance(border)
            stop = cluster.router.stop(border)
            rows = [Row(later.randint(border, stop - 1), 0, 10**6 + k) for k in range(2)]
            cluster.epoch(border, rows)
            answers.append((border, moves, json.dumps(cluster.router.state())))
        futures.append(answers)
    assert futures[0] == futures[1]


def test_the_checker_itself_sees_what_is_lost_doubled_or_outside() -> None:
    a, b, far = Row(1, 0, 0), Row(3, 1, 1), Row(9, 1, 2)
    rows, windows = [a, b, far], [2, 0]
    assert list(combinations_inside(rows, windows, same_group=False)) == [(a, b)]
    from collections import Counter

    assert violations(Counter({(a, b): 1}), rows, windows) == []
    assert violations(Counter(), rows, windows) == [f"lost: {(a, b)}"]
    assert violations(Counter({(a, b): 2}), rows, windows) == [f"2 times: {(a, b)}"]
    both = Counter({(a, b): 1, (a, far): 1})
    assert violations(both, rows, windows) == [f"outside: {(a, far)}"]
