"""A router that lacks one rule does not pass the test of the invariant."""

from __future__ import annotations

import random

import pytest
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.router import Router

from tests.diffusion.invariant import violations
from tests.diffusion.mutants import MUTANTS
from tests.diffusion.scenarios import draw_scenario, play

ATTEMPTS = 2000
CASES = [
    pytest.param(strategy, mutant, id=mutant.__name__)
    for strategy, mutants in MUTANTS.items()
    for mutant in mutants
]


@pytest.mark.parametrize(("strategy", "mutant"), CASES)
def test_a_mutant_is_caught(strategy: str, mutant: type[Router]) -> None:
    assert any(is_caught(seed, strategy, mutant) for seed in range(ATTEMPTS))


def is_caught(seed: int, strategy: str, mutant: type[Router]) -> bool:
    rng = random.Random(seed)
    scenario = draw_scenario(rng, strategy)
    try:
        cluster = play(rng, scenario, mutant)
    except RoutingError:  # a row sent twice, or the path of a segment that is not in the table
        return True
    same_group = cluster.router.needs_groups
    return bool(
        violations(cluster.completed, scenario.rows, cluster.windows, same_group=same_group)
    )
