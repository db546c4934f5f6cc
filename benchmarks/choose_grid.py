"""How good is ``choose``: in what share of a grid is its strategy within 10 % of the best?

    python benchmarks/choose_grid.py [--settings 120] [--seed 7] [--json FILE]

Every strategy runs in the simulator with the parameters that ``choose`` would give it, and where
segments have a length also with the other lengths that it tries.  A setting counts as right when
the chosen strategy, with the chosen length and on as many hosts as are said to be enough, has at
least 90 % of the results per second of the best of all these on all hosts.  Settings in which all
strategies keep up decide nothing and are shown apart.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
from windjoin.diffusion.choose import SEGMENTS, Choice, LoadStatistics, choose
from windjoin.diffusion.scenario import Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import simulate, with_hosts

STREAMS = (2, 3, 4, 5, 6)
HOSTS = (2, 5, 10, 30, 100)
WINDOWS_S = (10.0, 30.0, 90.0)
MATCHES = (0.2, 0.6, 1.0)
LOADS = (0.3, 1.0, 2.0)  # offered work against what all hosts could do without overhead
PROBE_MS = (10.0, 100.0)
HOT_KEYS = (None, 0.0, 0.1, 0.4)  # share of the most frequent key; None: groups are not possible
EVENTS = 200_000
SECONDS = 150.0  # at least, and four windows: most of a run is after they have filled


def setting(streams: int, hosts: int, window: float, matches: float, load: float,
            probe: float, hot_key: float | None) -> Scenario:  # fmt: skip
    """One point of the grid; rates follow from the load."""
    elements = sum(matches**hop for hop in range(streams - 1))
    work = elements * probe + matches ** (streams - 1)
    rate = load * hosts * 1000.0 / work / streams
    return Scenario(
        streams=tuple(StreamSpec(f"s{k}", rate, window) for k in range(streams)),
        hosts=(HostSpec(hosts),),
        matches=matches,
        seconds=max(SECONDS, 4 * window),
        costs=Costs(probe_ms=probe),
        events=EVENTS,
        hot_key=hot_key,
    )


Run = tuple[str, float, float]  # strategy, segment length, results per second


def measure(scenario: Scenario) -> tuple[Choice, dict[str, float], list[Run], float]:
    """The choice; results per second of every strategy, with every length, and as chosen."""
    known = replace(LoadStatistics.of(scenario), patience_s=scenario.seconds)
    choice = choose(known, scenario.host_count)
    found, runs = {}, []
    for estimate in choice.estimates:
        own = estimate.parameters.get("segment_s")
        tuned = replace(scenario, copies=int(estimate.parameters.get("copies", scenario.copies)))
        longest = max(spec.window_s for spec in scenario.streams)
        lengths = [longest / count for count in SEGMENTS] if own else [scenario.segment_s]
        for length in lengths:
            run = simulate(replace(tuned, segment_s=length), estimate.strategy).throughput
            runs.append((estimate.strategy, length, run))
            if own is None or isclose(length, own, rel_tol=1e-6):
                found[estimate.strategy] = run
    if choice.hosts == scenario.host_count:
        return choice, found, runs, found[choice.strategy]
    fewer = replace(
        with_hosts(scenario, choice.hosts),
        segment_s=choice.parameters.get("segment_s", scenario.segment_s),
        copies=int(choice.parameters.get("copies", scenario.copies)),
    )
    return choice, found, runs, simulate(fewer, choice.strategy).throughput


def run(settings: int, seed: int) -> list[dict[str, Any]]:
    """Measure a random sample of the grid."""
    grid = list(product(STREAMS, HOSTS, WINDOWS_S, MATCHES, LOADS, PROBE_MS, HOT_KEYS))
    picked = np.random.default_rng(seed).permutation(len(grid))[:settings]
    rows = []
    for at in sorted(picked.tolist()):
        print(".", end="", file=sys.stderr, flush=True)
        choice, found, runs, reached = measure(setting(*grid[at]))
        best = max(run for _, _, run in runs)
        rows.append({
            "setting": dict(
                zip(
                    ("streams", "hosts", "window_s", "matches", "load", "probe_ms", "hot_key"),
                    grid[at],
                    strict=True,
                )
            ),
            "chosen": choice.strategy,
            "best": max(found, key=lambda name: found[name]),
            "hosts": choice.hosts,
            "ratio": reached / best if best else 1.0,
            "ratio_on_all_hosts": found[choice.strategy] / best if best else 1.0,
            "spread": min(found.values()) / best if best else 1.0,
            "predicted": {e.strategy: e.share for e in choice.estimates},
            "measured": found,
            "runs": runs,
        })  # fmt: skip
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Shares of the settings in which the choice was right."""
    hard = [row for row in rows if sum(m >= 0.9 * max(row["measured"].values())
                                       for m in row["measured"].values())
            < len(row["measured"])]  # fmt: skip
    right = sum(row["ratio"] >= 0.9 for row in rows)
    right_hard = sum(row["ratio"] >= 0.9 for row in hard)
    return {
        "settings": len(rows),
        "within_10_percent": right / len(rows),
        "settings_that_differ": len(hard),
        "within_10_percent_where_they_differ": right_hard / max(len(hard), 1),
        "within_10_percent_on_all_hosts": sum(row["ratio_on_all_hosts"] >= 0.9 for row in rows)
        / len(rows),
        "worst_ratio": min(row["ratio"] for row in rows),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the percentage; exit 1 below 90 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=120)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows = run(options.settings, options.seed)
    for row in rows:
        if row["ratio"] < 0.9:
            print(f"miss {row['setting']}: chose {row['chosen']}, best {row['best']}, "
                  f"ratio {row['ratio']:.2f} on {row['hosts']}, "
                  f"{row['ratio_on_all_hosts']:.2f} on all hosts")  # fmt: skip
    said = summary(rows)
    print(
        f"within 10 % of the best in {said['within_10_percent']:.1%} of "
        f"{said['settings']} settings; in {said['within_10_percent_where_they_differ']:.1%} of the "
        f"{said['settings_that_differ']} in which strategies differ; "
        f"{said['within_10_percent_on_all_hosts']:.1%} on all hosts; worst ratio "
        f"{said['worst_ratio']:.2f}"
    )
    if options.json:
        options.json.write_text(json.dumps({"summary": said, "settings": rows}, indent=1) + "\n")
    return 0 if said["within_10_percent"] >= 0.9 else 1


if __name__ == "__main__":
    raise SystemExit(main())
