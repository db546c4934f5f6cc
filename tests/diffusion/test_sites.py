"""Which site gets which fragment: equation 1, algorithm 1, the paper's case study."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.sites import (
    Cut,
    Flowing,
    Network,
    SiteState,
    assign,
    merged,
    total_score,
)

# table 5; available workload is what is not loaded
TABLE_5 = [
    SiteState("S1", 0.15, 80.0, frozenset(("strm2", "strm3"))),
    SiteState("S2", 0.05, 100.0, frozenset(("strm1", "strm3", "strm4"))),
    SiteState("S3", 0.30, 70.0, frozenset(("strm1", "strm2", "strm3"))),
    SiteState("S4", 0.67, 40.0, frozenset(("strm1", "strm2", "strm3", "strm4"))),
    SiteState("S5", 0.10, 80.0, frozenset(("strm1", "strm2"))),
]


def stream(name: str, bandwidth: float) -> Flowing:
    return Flowing(name, bandwidth)


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.5])
def test_the_case_study_comes_out(weight: float) -> None:
    """Fragment 1 to S3, 2 and 3 to S2.

    The drawings of its plan and its links are lost.  By table 5 fragment 1 can only go to S3 if it
    reads streams 1, 2 and 3, as S5 has 1 and 2, S1 has 2 and 3, S2 has 1 and 3 for less load and
    more bandwidth; then it does for every weight of load up to a half where streams are heavy.
    """
    cuts = [
        Cut((stream("strm1", 60.0), stream("strm2", 60.0), stream("strm3", 60.0)), 5.0),
        Cut((stream("strm3", 60.0), stream("strm4", 60.0)), 5.0),
        Cut((Flowing("Nstr1", 5.0, 0), Flowing("Nstr2", 5.0, 1)), 1.0),
    ]
    placed = assign(cuts, TABLE_5, weights=(weight, 1 - weight))
    assert [one.site for one in placed] == ["S3", "S2", "S2"]
    assert merged(cuts, placed) == [[0], [1, 2]]


def test_the_score_is_equation_1() -> None:
    sites = [
        SiteState("a", 0.25, 50.0, frozenset(("x", "y"))),
        SiteState("b", 0.5, 100.0, frozenset("y")),
    ]
    (placed,) = assign([Cut((stream("x", 20.0), stream("y", 30.0)), 1.0)], sites, None, (0.6, 0.4))
    assert placed.scores["a"] == pytest.approx(0.75 * 0.6 + 50 / 100 * 0.4)
    assert placed.scores["b"] == pytest.approx(0.5 * 0.6 + (100 - 20) / 100 * 0.4)
    assert placed.site == "a"


def test_streams_come_over_the_shortest_path() -> None:
    sites = [SiteState(name, 0.0, 100.0, frozenset()) for name in "abc"]
    sites.append(SiteState("d", 0.0, 100.0, frozenset("x")))
    links = {("a", "b"): 1.0, ("b", "c"): 1.0, ("a", "c"): 5.0, ("c", "d"): 0.5}
    network = Network(sites, links)
    assert network.distance("a", "d") == 2.5
    assert network.nearest("b", ["a", "d"]) == ("a", 1.0)
    alone = Network(sites, {("a", "b"): 1.0})
    assert alone.distance("a", "d") == float("inf")
    states = [
        SiteState(name, 0.0, 1.0, frozenset(streams))
        for name, streams in {"a": "x", "b": "y", "c": ""}.items()
    ]
    cuts = [Cut((stream("x", 1.0), stream("y", 1.0)), 1.0)]
    with pytest.raises(RoutingError, match="no site can be reached by all of x, y; add a link"):
        assign(cuts, states, {("a", "c"): 1.0})


@st.composite
def problems(draw: Any) -> tuple[list[Cut], list[SiteState]]:
    names = "wxyz"
    sites = [
        SiteState(
            f"s{n}",
            draw(st.floats(0, 1)),
            draw(st.floats(1, 100)),
            frozenset(names) if n == 0 else frozenset(draw(st.sets(st.sampled_from(names)))),
        )
        for n in range(draw(st.integers(1, 4)))
    ]
    cuts = [Cut((stream("w", draw(st.floats(0, 50))), stream("x", draw(st.floats(0, 50)))), 1.0)]
    for name in names[2 : draw(st.integers(2, 4))]:
        below = Flowing("part", draw(st.floats(0, 50)), len(cuts) - 1)
        cuts.append(Cut((below, stream(name, draw(st.floats(0, 50)))), 1.0))
    return cuts, sites


def exhaustive(cuts: list[Cut], sites: list[SiteState]) -> tuple[float, list[str]]:
    """The assignment with the greatest sum of scores, of all there are."""
    network = Network(sites, None)
    return max(
        (total_score(cuts, names, network, (0.5, 0.5)), list(names))
        for names in product(network.sites, repeat=len(cuts))
    )


@given(problems())
def test_greedy_is_never_better_than_all_and_optimal_for_one_join(problem: Any) -> None:
    cuts, sites = problem
    placed = assign(cuts, sites)
    network = Network(sites, None)
    greedy = total_score(cuts, [one.site for one in placed], network, (0.5, 0.5))
    best, names = exhaustive(cuts, sites)
    assert greedy <= best + 1e-9
    assert total_score(cuts, names, network, (0.5, 0.5)) == pytest.approx(best)
    if len(cuts) == 1:
        assert greedy == pytest.approx(best)
    assert sorted(n for group in merged(cuts, placed) for n in group) == list(range(len(cuts)))


def test_without_sites_there_is_no_answer() -> None:
    with pytest.raises(RoutingError, match="there are no sites to choose from"):
        assign([], [])
    with pytest.raises(RoutingError, match=r"bandwidth of site 'a' is -1"):
        assign([], [SiteState("a", 0.5, -1, frozenset())])
