"""What may be best is simulated: the best of it is chosen, on as many hosts as are enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
from windjoin.diffusion import tried
from windjoin.diffusion.choose import LoadStatistics, choose
from windjoin.diffusion.scenario import Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import simulate
from windjoin.diffusion.tried import choose_tried


def scenario(
    rate: float, *, hosts: int, streams: int = 3, hot_key: float | None = None
) -> Scenario:
    specs = tuple(StreamSpec(f"s{k}", rate, 30) for k in range(streams))
    return Scenario(specs, hosts=(HostSpec(hosts),), matches=0.8, seconds=200,
                    costs=Costs(), events=200_000, hot_key=hot_key)  # fmt: skip


def test_little_work_stays_on_one_host() -> None:
    choice = choose_tried(scenario(2, hosts=10))
    assert (choice.strategy, choice.hosts) == ("single", 1)
    assert " results a second when simulated; " in choice.reasons[0]
    assert choice.reasons[0].endswith("; L_C alone; 1 host would do as well")


def test_the_best_of_what_was_tried_is_chosen_with_its_length() -> None:
    """No other strategy, with whatever length, finds a tenth more than the choice."""
    busy = scenario(60, hosts=8)
    choice = choose_tried(busy)
    length = choice.parameters["segment_s"]
    reached = simulate(replace(busy, segment_s=length), choice.strategy).results
    for strategy in ("atr", "ctr", "psp", "single"):
        for seconds in (15.0, 7.5, 1.875):
            other = simulate(replace(busy, segment_s=seconds), strategy).results
            assert reached >= 0.9 * other, (strategy, seconds)


def test_what_simulation_says_outweighs_a_wrong_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formulas that call every strategy alike leave the choice to what was found."""
    busy = scenario(60, hosts=8)
    right = choose_tried(busy)

    def level(statistics: LoadStatistics, hosts: list[float]) -> object:
        found = choose(statistics, hosts)
        alike = [replace(e, share=0.5, work_ms=1.0) for e in found.estimates]
        alike.sort(key=lambda e: e.strategy != "single")
        return replace(found, strategy="single", estimates=tuple(alike))

    monkeypatch.setattr(tried, "choose", level)
    assert choose_tried(busy).strategy == right.strategy != "single"


def test_hosts_are_enough_only_if_they_find_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A formula that says one host is enough is not believed."""
    busy = scenario(60, hosts=8)
    told = choose
    monkeypatch.setattr(
        tried, "choose", lambda known, speeds: replace(told(known, speeds), hosts=1)
    )
    choice = choose_tried(busy)
    found = {
        hosts: simulate(
            replace(busy, hosts=(HostSpec(hosts),), segment_s=choice.parameters["segment_s"]),
            choice.strategy,
        ).results
        for hosts in (choice.hosts, 8)
    }
    assert choice.hosts > 1
    assert found[choice.hosts] >= 0.9 * found[8]


def test_unlike_hosts_are_taken_as_fast_as_they_are() -> None:
    slow, fast = HostSpec(3, cpu=0.1, network=0.1), HostSpec(1, cpu=4.0, network=4.0)
    mixed = replace(scenario(20, hosts=1), hosts=(slow, fast))
    assert choose_tried(mixed).hosts == 1


def test_every_strategy_is_told_of_and_what_was_not_tried_says_why() -> None:
    choice = choose_tried(scenario(200, hosts=30, hot_key=0.0))
    told = {reason.split()[0]: reason for reason in choice.reasons}
    assert set(told) == {"single", "atr", "ctr", "psp", "groups"}
    assert choice.strategy == "groups"
    assert {e.strategy for e in choice.estimates} == set(told)
    assert "keeps up with " in told["single"]
    assert "equation 2: a row is at " in told["atr"]
