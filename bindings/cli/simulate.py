"""``windjoin simulate SCENARIO.toml``: how many hosts, which strategy, which segment length?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.scenario import Scenario, ScenarioError, load_scenario
from windjoin.diffusion.simulator import Outcome, simulate, with_hosts
from windjoin.diffusion.tried import choose_tried
from windjoin.figures import figure

MEASURES = (
    ("throughput", "results/s", "{:,.2f}"),
    ("processed", "rows/s", "{:,.2f}"),
    ("latency_mean_ms", "mean ms", "{:,.1f}"),
    ("latency_p95_ms", "p95 ms", "{:,.1f}"),
    ("state_rows", "state rows", "{:,.0f}"),
    ("replicated_rows", "replicated", "{:,.0f}"),
    ("bytes_moved", "MB moved", "{:,.2f}"),
    ("load_mean", "mean load", "{:.2f}"),
    ("load_peak", "peak load", "{:.2f}"),
    ("imbalance", "imbalance", "{:.2f}"),
)


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``simulate`` to the command line."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "simulate",
        help="simulate a cluster: throughput, latency, state and load of each strategy",
        description="Simulate a cluster in virtual time and compare strategies.",
    )
    parser.add_argument("scenario", type=Path, nargs="?", help="TOML file; see examples/scenarios")
    parser.add_argument(
        "--calibrate",
        nargs="?",
        const="",
        metavar="JOIN",
        help="measure what rows cost on this machine: of a join, whose costs the scenario takes,"
        " or of five, which are simulated with them and run on hosts",
    )
    parser.add_argument("--strategy", action="append", help="only this one (repeatable)")
    parser.add_argument("--hosts", type=int, action="append", help="so many hosts (repeatable)")
    parser.add_argument("--seed", type=int, help="instead of the scenario's")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw plots there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures and series")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit status is 2 where the scenario or an option is wrong."""
    try:
        if arguments.scenario is None:
            return _without_scenario(arguments)
        scenario = _scenario(arguments)
        if arguments.calibrate is not None:
            from windjoin.cli.simulate_costs import with_measured_costs

            scenario = with_measured_costs(scenario, arguments.calibrate)
        outcomes = _simulate(scenario, arguments.hosts or [scenario.host_count])
        for hosts in dict.fromkeys(hosts for hosts, _ in outcomes):
            _print_table(f"{hosts} hosts", [one for count, one in outcomes if count == hosts])
        _print_choice(scenario, arguments.hosts or [scenario.host_count])
        if arguments.json:
            said = [{"hosts": hosts, **asdict(outcome)} for hosts, outcome in outcomes]
            arguments.json.write_text(json.dumps(said, indent=1) + "\n", "utf-8")
        if arguments.plots:
            _draw(outcomes, arguments.plots)
    except (ScenarioError, RoutingError, OSError, ImportError) as error:
        print(f"windjoin simulate: {error}", file=sys.stderr)
        return 2
    return 0


def _without_scenario(arguments: argparse.Namespace) -> int:
    if arguments.calibrate is None:
        raise ScenarioError("give a scenario, or --calibrate")
    for option in ("strategy", "seed", "plots"):
        if getattr(arguments, option) is not None:
            raise ScenarioError(f"--{option} needs a scenario")
    _check_hosts(arguments)
    from windjoin.cli.simulate_costs import calibrate

    return calibrate(arguments)


def _scenario(arguments: argparse.Namespace) -> Scenario:
    scenario = load_scenario(arguments.scenario)
    if arguments.seed is not None:
        scenario = replace(scenario, seed=arguments.seed)
    if arguments.strategy:
        scenario = replace(scenario, strategies=tuple(arguments.strategy))
    _check_hosts(arguments)
    return scenario


def _check_hosts(arguments: argparse.Namespace) -> None:
    for hosts in arguments.hosts or ():
        if hosts < 1:
            raise ScenarioError(f"--hosts is {hosts}; it must be at least 1")


def _simulate(scenario: Scenario, counts: Sequence[int]) -> list[tuple[int, Outcome]]:
    return [
        (hosts, simulate(_on(scenario, hosts), strategy))
        for hosts in counts
        for strategy in scenario.strategies
    ]


def _on(scenario: Scenario, hosts: int) -> Scenario:
    return scenario if hosts == scenario.host_count else with_hosts(scenario, hosts)


def _row(key: str, form: str, outcomes: Sequence[Outcome]) -> list[str]:
    scale = 1e6 if key == "bytes_moved" else 1
    return [form.format(getattr(outcome, key) / scale) for outcome in outcomes]


def _print_table(title: str, outcomes: Sequence[Outcome]) -> None:
    """A column per strategy: they are few, and fit a narrow terminal."""
    titles = [title, *(outcome.strategy for outcome in outcomes)]
    rows = [[name, *_row(key, form, outcomes)] for key, name, form in MEASURES]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _print_plain(titles, rows)
        return
    table = Table()
    for at, name in enumerate(titles):
        table.add_column(name, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _print_plain(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[at]) for row in [titles, *rows]) for at in range(len(titles))]
    for row in [titles, *rows]:
        cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells))


def _print_choice(scenario: Scenario, counts: Sequence[int]) -> None:
    for hosts in counts:
        choice = choose_tried(_on(scenario, hosts))
        parameters = ", ".join(f"{key} {figure(value)}" for key, value in choice.parameters.items())
        with_them = f" with {parameters}" if parameters else ""
        print(f"{hosts} hosts: choose {choice.strategy}{with_them}")
        for reason in choice.reasons:
            print(f"  {reason}")


def _draw(outcomes: Sequence[tuple[int, Outcome]], folder: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        raise ImportError("--plots needs matplotlib: pip install 'windjoin[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    for series in outcomes[0][1].series:
        figure, axes = pyplot.subplots(figsize=(7, 4))
        for hosts, outcome in outcomes:
            values = outcome.series[series]
            times = [outcome.seconds * (at + 1) / len(values) for at in range(len(values))]
            axes.plot(times, values, label=f"{outcome.strategy}, {hosts} hosts")
        axes.set_xlabel("seconds")
        axes.set_ylabel(series.replace("_", " "))
        axes.legend(fontsize="small")
        figure.tight_layout()
        figure.savefig(folder / f"{series}.png", dpi=120)
        pyplot.close(figure)
