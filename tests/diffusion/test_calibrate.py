"""``windjoin simulate --calibrate``: costs that simulations take, and runs to compare them with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from windjoin import host_costs, host_trials
from windjoin.cli import simulate_costs
from windjoin.diffusion.scenario import Costs
from windjoin.diffusion.simulator import simulate
from windjoin.host_costs import Learned, learn, ran, scenario_of, simulated_rate
from windjoin.host_trials import HostTrial

from tests.diffusion.test_simulate_command import SMALL, command

TRIALS = host_trials.host_trials()


def short(trial: HostTrial) -> HostTrial:
    return replace(trial, rows=600, window=40, segment=40 if trial.strategy == "atr" else 10)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (simulate_costs, host_trials):
        monkeypatch.setattr(module, "host_trials", lambda: [short(trial) for trial in TRIALS])


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_a_simulated_run_has_the_rows_and_the_results_of_the_real_one(trial: HostTrial) -> None:
    small = replace(trial, rows=4_000, window=200, segment=50)
    learned = learn(small)
    real = ran(small.query(200), small.tables(4_000), 2, small.strategy, small.segment)
    outcome = simulate(scenario_of(small, learned, 2)[0], small.strategy)
    assert outcome.offered * outcome.seconds == pytest.approx(small.streams * 4_000, rel=0.05)
    if real.results > 1_000:
        assert outcome.results == pytest.approx(real.results, rel=0.2)


def test_costs_that_are_twice_as_high_halve_the_rate() -> None:
    one = Learned(Costs(0.0, 1e-3, 0.0, 1e-5, 0.0), 0.001)
    two = Learned(Costs(0.0, 2e-3, 0.0, 2e-5, 0.0), 0.001)
    rate = simulated_rate(TRIALS[0], one, 2)
    assert simulated_rate(TRIALS[0], two, 2) == pytest.approx(rate / 2, rel=0.02)


def test_hosts_that_share_processors_are_no_faster_than_these(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_costs, "cores", lambda: 2)
    learned = Learned(Costs(0.0, 1e-3, 0.0, 1e-5, 0.0), 0.001)
    assert simulated_rate(TRIALS[0], learned, 4) <= 1.02 * simulated_rate(TRIALS[0], learned, 2)


def test_it_tells_what_was_simulated_and_measured(
    few_rows: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--calibrate", "--json", tmp_path / "out.json") == 0
    said = capsys.readouterr().out
    assert "by the clock" in said
    assert said.count("[costs]") == len(TRIALS)
    joins = json.loads((tmp_path / "out.json").read_text())["joins"]
    assert [one["name"] for one in joins] == [trial.name for trial in TRIALS]
    for one in joins:
        assert one["simulated"] / one["measured"] == pytest.approx(one["ratio"])


def test_a_scenario_takes_the_costs_of_a_join(
    few_rows: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    assert command(path, "--calibrate", "function") == 0
    said = capsys.readouterr().out
    assert "[costs]  # of 'function' on this machine" in said
    assert "2 hosts: choose single" in said


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give a scenario, or --calibrate"),
        (["--calibrate", "--seed", "3"], "--seed needs a scenario"),
        (["--calibrate", "--hosts", "0"], "--hosts is 0; it must be at least 1"),
        (
            ["--calibrate", "hash"],
            "--calibrate: there is no join 'hash'; there are function, slope, keys, three, sets",
        ),
        (
            ["{small}", "--calibrate"],
            "--calibrate beside a scenario: name the join to measure, of function, slope, keys,",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    assert command(*(each.format(small=path) for each in arguments)) == 2
    assert text in capsys.readouterr().err
