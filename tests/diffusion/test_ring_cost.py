"""The cost model of the ring: its own identities, and the simulator as judge."""

from __future__ import annotations

import math

import pytest
from windjoin.diffusion.ring_cost import (
    Probed,
    RingCosts,
    best_length_for_latency,
    best_length_for_rate,
    central_latency,
    elements,
    least_bandwidth,
    output_rate,
    ring_latency,
    ring_lengths,
    ring_work,
)
from windjoin.diffusion.scenario import Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import simulate

EQUAL = [Probed(10, 20, 0.01), Probed(10, 20, 0.01)]
COSTS = RingCosts(insert=0, purge=0, compare=0.5, send=1, network=1)


@pytest.mark.parametrize("hosts", [2, 7, 40])
def test_ring_work_is_the_published_product_for_equal_streams(hosts: int) -> None:
    central = central_latency(COSTS, EQUAL)
    published = central * (1 + COSTS.send * hosts / (200 * COSTS.compare))
    assert ring_work(COSTS, EQUAL, hosts) == pytest.approx(published)


@pytest.mark.parametrize("hosts", [2, 7, 40])
def test_output_rate_is_the_published_quotient_for_equal_streams(hosts: int) -> None:
    single = output_rate(COSTS, EQUAL, 1)
    published = single / (1 / hosts + COSTS.send / (200 * COSTS.compare))
    assert output_rate(COSTS, EQUAL, hosts) == pytest.approx(published)


def test_best_length_for_latency_is_near_the_best_of_all_lengths() -> None:
    for streams in (EQUAL, [Probed(50, 30, 0.001)], [Probed(3, 5, 0.3), Probed(20, 60, 0.01)]):
        chosen = best_length_for_latency(COSTS, streams)
        best = min(ring_latency(COSTS, streams, hosts) for hosts in range(1, 400))
        assert ring_latency(COSTS, streams, chosen) <= 1.3 * best


def test_best_length_for_rate_keeps_the_efficiency() -> None:
    length = best_length_for_rate(COSTS, EQUAL, efficiency=0.8)
    for hosts, enough in ((length, True), (length + 1, False)):
        useful = central_latency(COSTS, EQUAL) / ring_work(COSTS, EQUAL, hosts)
        assert (useful >= 0.8 - 1e-9) == enough


def test_free_links_make_any_length_good() -> None:
    free = RingCosts(compare=1, send=0, network=0)
    assert best_length_for_latency(free, EQUAL) == best_length_for_rate(free, EQUAL) == 1 << 16
    assert math.isinf(least_bandwidth(free, [Probed(0, 1, 1)], 3, 100))


def test_small_windows_get_short_rings() -> None:
    streams = [Probed(50, 60, 0.001), Probed(1, 1, 0.5)]
    for objective in ("latency", "rate"):
        lengths = ring_lengths(COSTS, streams, 64, objective=objective)
        assert lengths[1] <= 2 < lengths[0] <= 64


def test_cost_model_refuses_what_has_no_meaning() -> None:
    with pytest.raises(ValueError, match="efficiency is 1; it must be between 0 and 1"):
        best_length_for_rate(COSTS, EQUAL, efficiency=1)
    with pytest.raises(ValueError, match="objective is 'memory'; it must be 'latency' or 'rate'"):
        ring_lengths(COSTS, EQUAL, 4, objective="memory")


@pytest.mark.parametrize("hosts", [4, 12])
def test_simulated_ring_work_follows_the_model(hosts: int) -> None:
    """At low load, work per row in the simulator is L_PSP up to the two ends of the ring."""
    streams = tuple(StreamSpec(name, 2, 60) for name in "abc")
    costs = Costs(send_ms=1, receive_ms=0, probe_ms=0, compare_ms=0.5, link_ms=1)
    scenario = Scenario(
        streams, hosts=(HostSpec(hosts),), selectivity=0.01, seconds=900, costs=costs
    )
    outcome = simulate(scenario, "psp")
    warm = slice(30, None)
    work = sum(outcome.series["load_mean"][warm]) / len(outcome.series["load_mean"][warm])
    per_row = 1000 * work * hosts / outcome.offered
    seen = [Probed(2, 60, 0.01), Probed(2, 60, 0.01)]
    model = ring_work(RingCosts(0, 0, 0.5, 1, 1), seen, hosts)
    results = elements(seen)[-1] * seen[-1].matches  # sent to the sink, which the model leaves out
    build = hosts - 1  # rows that travel as state, which the model leaves out too
    assert per_row == pytest.approx(model + results + build, rel=0.08)
