"""Which strategy for a scenario: what the formulas say is closest, tried in the simulator.

The formulas of `choose` know means.  Which hosts a router gives segments to, what waits behind
what, and how lengths and shares follow the load comes out when the router is asked, so the
strategies, lengths and numbers of hosts that may be best are simulated, with other arrivals than
the scenario's own, and in batches that are as large or larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from windjoin.diffusion.choose import (
    EQUALS,
    KNOWN,
    Choice,
    Estimate,
    LoadStatistics,
    choose,
    lengths,
)
from windjoin.diffusion.scenario import HostSpec, Scenario
from windjoin.diffusion.simulator import simulate
from windjoin.pyx.base.figures import figure

CLOSE = 4.0  # what keeps up with so many times less, by the formulas, is not tried
NEAR = 1.3  # what found so many times less is not tried with other lengths
ENOUGH = 0.97  # of what all hosts find is what fewer must find to be enough
EVENTS = 200_000  # of a trial, at most
OTHER_SEED = 7_919


class Trial(NamedTuple):
    """A strategy with its parameters, and what it found."""

    estimate: Estimate
    results: float  # per second


def choose_tried(scenario: Scenario) -> Choice:
    """The best of what may be best, by its results per second in the simulator.

    >>> from windjoin.diffusion.scenario import StreamSpec
    >>> s = Scenario((StreamSpec("a", 40, 10), StreamSpec("b", 40, 10)), matches=1.0, seconds=60)
    >>> choose_tried(s).strategy, choose_tried(s).hosts
    ('single', 1)
    """
    known = replace(LoadStatistics.of(scenario), patience_s=scenario.seconds)
    speeds = [spec.cpu for spec in scenario.hosts for _ in range(spec.count)]
    guessed = choose(known, speeds)
    alike = replace(scenario, seed=scenario.seed + OTHER_SEED, events=min(EVENTS, scenario.events))
    trials = _trials(alike, known, guessed)
    most = max(trial.results for trial in trials)
    equals = [trial for trial in trials if trial.results >= most * (1 - EQUALS)]
    best = min(equals, key=lambda t: (t.estimate.work_ms, KNOWN.index(t.estimate.strategy)))
    enough = _enough(alike, best, guessed)
    ranked = [best, *sorted((t for t in trials if t is not best), key=lambda t: -t.results)]
    tried = {trial.estimate.strategy for trial in trials}
    untried = [e for e in guessed.estimates if e.strategy not in tried]
    return Choice(
        best.estimate.strategy,
        best.estimate.parameters,
        _reasons(ranked, untried, enough),
        (*(trial.estimate for trial in _best_of_each(ranked)), *untried),
        enough,
    )


def _trials(scenario: Scenario, known: LoadStatistics, guessed: Choice) -> list[Trial]:
    """What is close by the formulas; then other lengths of what is close by what it found."""
    top = guessed.estimates[0].share
    first = [
        _trial(scenario, estimate)
        for estimate in guessed.estimates
        if estimate.share * CLOSE >= top
    ]
    most = max(trial.results for trial in first)
    others = [
        _trial(scenario, _with_length(trial.estimate, length))
        for trial in first
        if trial.results * NEAR >= most and "segment_s" in trial.estimate.parameters
        for length in lengths(known.profiles)
        if length != trial.estimate.parameters["segment_s"]
    ]
    return first + others


def _with_length(estimate: Estimate, seconds: float) -> Estimate:
    return replace(estimate, parameters=estimate.parameters | {"segment_s": seconds})


def _trial(scenario: Scenario, estimate: Estimate) -> Trial:
    return Trial(estimate, simulate(_as_asked(scenario, estimate), estimate.strategy).throughput)


def _as_asked(scenario: Scenario, estimate: Estimate) -> Scenario:
    """With the parameters of an estimate."""
    return replace(
        scenario,
        segment_s=estimate.parameters.get("segment_s", scenario.segment_s),
        copies=int(estimate.parameters.get("copies", scenario.copies)),
    )


def _enough(scenario: Scenario, best: Trial, guessed: Choice) -> int:
    """The least number of the fastest hosts, from what the formulas say on, that find as much."""
    fastest = sorted(
        (replace(spec, count=1) for spec in scenario.hosts for _ in range(spec.count)),
        key=lambda spec: -spec.cpu,
    )
    hosts = 1 if best.estimate.strategy == "single" else guessed.hosts
    while hosts < len(fastest):
        fewer = replace(scenario, hosts=_specs(fastest[:hosts]))
        if _trial(fewer, best.estimate).results >= ENOUGH * best.results:
            return hosts
        hosts *= 2
    return len(fastest)


def _specs(hosts: Sequence[HostSpec]) -> tuple[HostSpec, ...]:
    """Hosts that are alike as one."""
    found: list[HostSpec] = []
    for spec in hosts:
        if found and replace(found[-1], count=1) == spec:
            found[-1] = replace(found[-1], count=found[-1].count + 1)
        else:
            found.append(spec)
    return tuple(found)


def _best_of_each(ranked: Sequence[Trial]) -> list[Trial]:
    """Of every strategy what came first."""
    seen: dict[str, Trial] = {}
    for trial in ranked:
        seen.setdefault(trial.estimate.strategy, trial)
    return list(seen.values())


def _reasons(ranked: Sequence[Trial], untried: Sequence[Estimate], enough: int) -> tuple[str, ...]:
    def line(trial: Trial) -> str:
        e = trial.estimate
        length = e.parameters.get("segment_s")
        with_it = "" if length is None else f" with segments of {figure(length)} s"
        return (
            f"{e.strategy}{with_it} finds {figure(trial.results)} results a second when simulated;"
            f" by the formulas {e.work_ms:.1f} ms of work per row, {e.overhead_ms:.1f} of them"
            f" overhead; {e.formula}"
        )

    best, *others = _best_of_each(ranked)
    number = f"{enough} host{'s' * (enough > 1)} would do as well"
    return (
        f"{line(best)}; {number}",
        *map(line, others),
        *(f"{e.strategy} keeps up with {e.share:.0%} of the input; {e.formula}" for e in untried),
    )
