"""``choose`` says what the formulas say, and is right where the answer is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from windjoin.diffusion.choose import Choice, LoadStatistics, choose
from windjoin.diffusion.scenario import Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import simulate, with_hosts


def scenario(rate: float, *, hosts: int, window: float = 30, streams: int = 3,
             costs: Costs | None = None) -> Scenario:  # fmt: skip
    specs = tuple(StreamSpec(f"s{k}", rate, window) for k in range(streams))
    return Scenario(specs, hosts=(HostSpec(hosts),), matches=0.8, seconds=200,
                    costs=costs or Costs(), events=200_000)  # fmt: skip


def chosen(scenario: Scenario) -> Choice:
    return choose(LoadStatistics.of(scenario), scenario.host_count)


def test_little_work_stays_on_one_host() -> None:
    choice = chosen(scenario(2, hosts=10))
    assert choice.strategy == "single"
    assert choice.reasons[0].startswith("single keeps up with 100% of the input: ")
    assert len(choice.reasons) == len(choice.estimates) == 4


def test_more_work_than_one_host_can_do_is_spread() -> None:
    busy = scenario(40, hosts=20)
    choice = chosen(busy)
    assert choice.strategy != "single"
    spread = simulate(busy, choice.strategy).throughput
    assert spread > 2 * simulate(busy, "single").throughput


def test_expensive_comparisons_on_free_links_choose_the_ring_over_hops() -> None:
    costs = Costs(send_ms=0, receive_ms=0, probe_ms=500)
    shares = {e.strategy: e.share for e in chosen(scenario(10, hosts=30, costs=costs)).estimates}
    assert shares["psp"] >= max(shares.values()) * 0.999
    assert shares["psp"] > shares["ctr"]


def test_sending_makes_rings_of_many_hosts_costly() -> None:
    few, many = (
        next(e for e in chosen(scenario(5, hosts=hosts)).estimates if e.strategy == "psp")
        for hosts in (2, 100)
    )
    assert many.overhead_ms > 20 * few.overhead_ms


def test_speeds_of_hosts_count() -> None:
    statistics = LoadStatistics.of(scenario(20, hosts=1))
    assert choose(statistics, [4.0]).estimates[0].share == pytest.approx(
        min(1.0, 4 * choose(statistics, 1).estimates[0].share)
    )


def test_a_key_of_all_streams_makes_groups_possible_and_they_copy_nothing() -> None:
    statistics = LoadStatistics.of(scenario(40, hosts=20))
    keyed = LoadStatistics(statistics.profiles, statistics.costs, keyed=True)
    assert "groups" not in {e.strategy for e in choose(statistics, 20).estimates}
    choice = choose(keyed, 20)
    assert choice.strategy == "groups"
    (groups,) = (e for e in choice.estimates if e.strategy == "groups")
    assert groups.overhead_ms == 0


def test_a_frequent_key_bounds_what_groups_keep_up_with() -> None:
    statistics = LoadStatistics.of(scenario(400, hosts=20))
    shares = []
    for hot_key in (0.0, 0.3, 1.0):
        asked = LoadStatistics(
            statistics.profiles, statistics.costs, keyed=True, hot_key=hot_key, scanned=False
        )
        (groups,) = (e for e in choose(asked, 20).estimates if e.strategy == "groups")
        shares.append((groups.share, groups.parallel))
    assert shares[0][0] > shares[1][0] > shares[2][0]
    assert [parallel for _, parallel in shares] == pytest.approx([20, 1 / (0.3 + 0.7 / 20), 1])
    (single,) = (e for e in choose(asked, 20).estimates if e.strategy == "single")
    assert shares[2][0] == pytest.approx(single.share)


def test_choose_refuses_what_is_no_cluster() -> None:
    statistics = LoadStatistics.of(scenario(5, hosts=1))
    with pytest.raises(ValueError, match=r"hosts is 0; it must be at least 1"):
        choose(statistics, 0)
    with pytest.raises(ValueError, match=r"hosts is \[1\.0, -1\.0\]; it must be"):
        choose(statistics, [1.0, -1.0])
    with pytest.raises(ValueError, match="patience_s is -1; it must be >= 0"):
        choose(LoadStatistics(statistics.profiles, patience_s=-1), 2)


def test_reasons_name_the_formulas_and_how_many_hosts_are_enough() -> None:
    choice = chosen(scenario(2, hosts=10))
    assert choice.hosts == 1
    assert choice.reasons[0].endswith("; L_C alone; 1 host would do as well")
    told = {reason.split()[0]: reason for reason in choice.reasons}
    assert "equation 2: a row is at " in told["atr"]
    assert "equation 3: |V| = " in told["ctr"]
    assert "L_PSP = L_C + T_s N E, N = 10" in told["psp"]


@pytest.mark.parametrize("rate", [20, 40])
def test_as_many_hosts_as_are_enough_find_as_much_as_all(rate: float) -> None:
    many = scenario(rate, hosts=60)
    choice = chosen(many)
    assert 1 < choice.hosts < 60
    found = {
        hosts: simulate(with_hosts(many, hosts), choice.strategy).throughput
        for hosts in (60, choice.hosts, 1)
    }
    all_hosts, enough, one = found.values()
    assert enough > 0.9 * all_hosts > one


def test_long_segments_leave_hosts_without_any_until_the_run_is_over() -> None:
    """With T = 15 s and 150 s only ten of a hundred hosts are given a segment of the master's."""
    busy = scenario(300, hosts=100, streams=2, costs=Costs(probe_ms=100))
    found = {
        seconds: simulate(replace(busy, seconds=150, segment_s=seconds), "atr").results
        for seconds in (15.0, 1.875)
    }
    known = replace(LoadStatistics.of(busy), patience_s=150.0)
    (atr,) = (e for e in choose(known, 100).estimates if e.strategy == "atr")
    assert atr.parameters["segment_s"] == 1.875
    assert found[1.875] > 4 * found[15.0]


def test_a_run_without_any_time_is_planned_as_a_very_short_one() -> None:
    known = LoadStatistics.of(scenario(60, hosts=8))
    none, short = (choose(replace(known, patience_s=run), 8) for run in (0.0, 1e-6))
    assert none == short
    assert 0 < none.estimates[0].share <= 1


@pytest.mark.parametrize("rate", [15, 30])
def test_what_waits_at_each_hop_comes_through_as_the_formula_says(rate: float) -> None:
    """On two hosts that hold everything, at twice and four times what they can do."""
    busy = replace(scenario(rate, hosts=2, costs=Costs(probe_ms=50)), segment_s=3.75, seconds=900)
    (ctr,) = (e for e in chosen(busy).estimates if e.strategy == "ctr")
    run = simulate(busy, "ctr")
    full = simulate(replace(busy, costs=Costs(probe_ms=0.01, send_ms=0, receive_ms=0)), "single")
    assert run.results / full.results == pytest.approx(ctr.share, rel=0.3)
