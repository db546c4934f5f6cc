"""``windjoin simulate --calibrate``: costs of this machine, and whether they are right."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version

from windjoin.diffusion.scenario import Costs, Scenario, ScenarioError
from windjoin.diffusion.worked import cores
from windjoin.host_costs import Compared, compared, learn
from windjoin.host_trials import HostTrial, host_trials

HEADINGS = ("join", "strategy", "hosts", "simulated", "by the clock", "", "by processor time", "")


def chosen_trials(name: str) -> list[HostTrial]:
    """The join of that name, or all of them where none was named."""
    known = host_trials()
    found = [trial for trial in known if name in ("", trial.name)]
    if not found:
        there_are = ", ".join(trial.name for trial in known)
        raise ScenarioError(f"--calibrate: there is no join {name!r}; there are {there_are}")
    return found


def with_measured_costs(scenario: Scenario, name: str) -> Scenario:
    """The same with the costs of a join on this machine; links stay as they were said to be."""
    if not name:
        joins = ", ".join(trial.name for trial in host_trials())
        raise ScenarioError(f"--calibrate beside a scenario: name the join to measure, of {joins}")
    (trial,) = chosen_trials(name)
    measured = replace(learn(trial).costs, link_ms=scenario.costs.link_ms)
    print(as_toml(trial.name, measured))
    return replace(scenario, costs=measured)


def calibrate(arguments: argparse.Namespace) -> int:
    """Measure, simulate, compare; exit status 0."""
    counts = arguments.hosts or [min(2, cores())]
    found = []
    print(_line(HEADINGS))
    for trial in chosen_trials(arguments.calibrate):
        for hosts in counts:
            one = compared(trial, hosts)
            found.append(one)
            print(_line(_cells(one)), flush=True)
    print("\nrows per second; the ratios are simulated / measured\n")
    for one in {each.name: each for each in found}.values():
        print(as_toml(one.name, one.learned.costs))
    if arguments.json:
        arguments.json.write_text(json.dumps(as_data(found), indent=1) + "\n", "utf-8")
    return 0


def as_toml(name: str, costs: Costs) -> str:
    """Costs as a scenario takes them."""
    values = "".join(f"{key} = {value:.6g}\n" for key, value in asdict(costs).items())
    return f"[costs]  # of {name!r} on this machine\n{values}"


def as_data(found: Sequence[Compared]) -> dict[str, object]:
    """What was found, with the machine."""
    return {
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cores": cores(),
            "python": sys.version.split()[0],
            "windjoin": version("windjoin"),
        },
        "joins": [
            {**asdict(one), "ratio": one.ratio, "ratio_unhindered": one.ratio_unhindered}
            for one in found
        ],
    }


def _cells(one: Compared) -> tuple[str, ...]:
    return (
        one.name,
        one.strategy,
        str(one.hosts),
        f"{one.simulated:,.0f}",
        f"{one.measured:,.0f}",
        f"{one.ratio:.2f}",
        f"{one.unhindered:,.0f}",
        f"{one.ratio_unhindered:.2f}",
    )


def _line(cells: Sequence[str]) -> str:
    widths = (9, 9, 6, 11, 13, 6, 18, 6)
    return "".join(
        cell.ljust(width) if at < 2 else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
