"""Greedy set cover: the textbook's choice, never far from the optimum."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from windjoin.pyx.routing.cover import CoverProblem

from tests.effort import examples

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def textbook(held: Bools, weights: Floats) -> list[int] | None:
    """Least weight per newly covered segment, ties to the lowest number; None if impossible."""
    left = np.ones(held.shape[1], dtype=bool)
    chosen: list[int] = []
    while left.any():
        gains = (held & left).sum(axis=1)
        if not gains.any():
            return None
        price = np.where(gains > 0, weights / np.maximum(gains, 1), np.inf)
        chosen.append(int(price.argmin()))
        left &= ~held[chosen[-1]]
    return chosen


def optimum(held: Bools, weights: Floats) -> float:
    """Weight of the best cover, by trying all."""
    hosts = range(held.shape[0])
    return min(
        sum(weights[list(chosen)])
        for size in range(1, held.shape[0] + 1)
        for chosen in combinations(hosts, size)
        if held[list(chosen)].any(axis=0).all()
    )


def draw_problem(
    seed: int, hosts: int, segments: int, *, covered: bool = True
) -> tuple[Bools, Floats]:
    rng = np.random.default_rng(seed)
    held = rng.random((hosts, segments)) < rng.choice([0.02, 0.1, 0.4])
    if covered:
        held[rng.integers(0, hosts, segments), np.arange(segments)] = True
    weights = rng.integers(1, rng.choice([2, 6, 1025]), hosts).astype(np.float64)
    return held, weights


@given(st.integers(0, 1 << 40), st.integers(1, 300), st.integers(1, 300), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_cover_equals_the_textbook(seed: int, hosts: int, segments: int, covered: bool) -> None:
    held, weights = draw_problem(seed, hosts, segments, covered=covered)
    assert CoverProblem(held, weights).cover() == textbook(held, weights)


@given(st.integers(0, 1 << 40), st.integers(1, 8), st.integers(1, 20))
@settings(max_examples=examples(150), deadline=None)
def test_cover_is_within_the_harmonic_bound_of_the_optimum(
    seed: int, hosts: int, segments: int
) -> None:
    held, weights = draw_problem(seed, hosts, segments)
    chosen = CoverProblem(held, weights).cover()
    assert chosen is not None
    largest = int(held.sum(axis=1).max())
    harmonic = sum(1 / k for k in range(1, largest + 1))
    assert sum(weights[chosen]) <= harmonic * optimum(held, weights) + 1e-9


def test_cover_is_near_the_optimum_on_average() -> None:
    problems = [draw_problem(seed, hosts=8, segments=16) for seed in range(150)]
    ratios = [
        sum(weights[CoverProblem(held, weights).cover()]) / optimum(held, weights)
        for held, weights in problems
    ]
    assert 1.0 <= np.mean(ratios) < 1.1


@pytest.mark.parametrize(("hosts", "segments"), [(3, 5), (200, 100)])
def test_cover_says_when_nobody_holds_a_segment(hosts: int, segments: int) -> None:
    held = np.ones((hosts, segments), dtype=bool)
    held[:, segments // 2] = False
    assert CoverProblem(held, np.ones(hosts)).cover() is None


def test_ties_go_to_the_lowest_host() -> None:
    for hosts in (4, 300):
        assert CoverProblem(np.ones((hosts, 9), dtype=bool), np.full(hosts, 7.0)).cover() == [0]


def test_seconds_are_positive_and_small() -> None:
    held, weights = draw_problem(1, 8, 16)
    assert 0 <= CoverProblem(held, weights).seconds(1000) < 0.01
