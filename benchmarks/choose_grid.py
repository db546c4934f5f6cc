"""How good is ``choose``: in what share of a grid is its strategy within 10 % of the best?

    python benchmarks/choose_grid.py [--settings 120] [--seed 7] [--json FILE]

Every strategy runs in the simulator with every length of segments that is tried.  A setting counts
as right when the chosen strategy, with the chosen length and on as many hosts as are said to be
enough, has at least 90 % of the results per second of the best of all these on all hosts.  Settings
in which all strategies keep up decide nothing and are shown apart.  Judged: `choose_tried`, which
simulates what may be best with other arrivals, and the formulas alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from math import isclose
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from windjoin.diffusion.choose import SEGMENTS, Choice, LoadStatistics, choose
from windjoin.diffusion.scenario import Costs, HostSpec, Scenario, StreamSpec
from windjoin.diffusion.simulator import simulate, with_hosts
from windjoin.diffusion.tried import choose_tried

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


def all_runs(scenario: Scenario, guessed: Choice) -> list[Run]:
    """Every strategy with every length."""
    runs = []
    for estimate in guessed.estimates:
        own = estimate.parameters.get("segment_s")
        tuned = replace(scenario, copies=int(estimate.parameters.get("copies", scenario.copies)))
        longest = max(spec.window_s for spec in scenario.streams)
        for length in [longest / count for count in SEGMENTS] if own else [scenario.segment_s]:
            run = simulate(replace(tuned, segment_s=length), estimate.strategy).throughput
            runs.append((estimate.strategy, length, run))
    return runs


def judged(scenario: Scenario, choice: Choice, runs: list[Run]) -> dict[str, Any]:
    """What a choice has of the best: on as many hosts as it says are enough, and on all."""
    length = choice.parameters.get("segment_s", scenario.segment_s)
    on_all = next(
        run
        for strategy, at, run in runs
        if strategy == choice.strategy and isclose(at, length, rel_tol=1e-6)
    )
    fewer = replace(
        with_hosts(scenario, choice.hosts),
        segment_s=length,
        copies=int(choice.parameters.get("copies", scenario.copies)),
    )
    all_hosts = choice.hosts == scenario.host_count
    reached = on_all if all_hosts else simulate(fewer, choice.strategy).throughput
    best = max(run for _, _, run in runs)
    return {
        "chosen": choice.strategy,
        "segment_s": length,
        "hosts": choice.hosts,
        "ratio": reached / best if best else 1.0,
        "ratio_on_all_hosts": on_all / best if best else 1.0,
    }


Point = tuple[int, int, float, float, float, float, float | None]  # of the grid


def row(point: Point) -> dict[str, Any]:
    """One setting, measured and judged."""
    scenario = setting(*point)
    known = replace(LoadStatistics.of(scenario), patience_s=scenario.seconds)
    guessed = choose(known, scenario.host_count)
    began = process_time()
    tried = choose_tried(scenario)
    took = process_time() - began
    runs = all_runs(scenario, guessed)
    found = {name: max(r for s, _, r in runs if s == name) for name, _, _ in runs}
    names = ("streams", "hosts", "window_s", "matches", "load", "probe_ms", "hot_key")
    print(".", end="", file=sys.stderr, flush=True)
    return {
        "setting": dict(zip(names, point, strict=True)),
        "best": max(found, key=lambda name: found[name]),
        **judged(scenario, tried, runs),
        "seconds": took,
        "by_formulas": judged(scenario, guessed, runs),
        "predicted": {e.strategy: e.share for e in guessed.estimates},
        "measured": found,
        "runs": runs,
    }


def run(settings: int, seed: int, jobs: int) -> list[dict[str, Any]]:
    """Measure a random sample of the grid."""
    grid = list(product(STREAMS, HOSTS, WINDOWS_S, MATCHES, LOADS, PROBE_MS, HOT_KEYS))
    picked = sorted(np.random.default_rng(seed).permutation(len(grid))[:settings].tolist())
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(row, [grid[at] for at in picked]))


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


def told(said: dict[str, float]) -> str:
    """A summary in words."""
    return (
        f"within 10 % of the best in {said['within_10_percent']:.1%} of "
        f"{said['settings']} settings; in {said['within_10_percent_where_they_differ']:.1%} of the "
        f"{said['settings_that_differ']} in which strategies differ; "
        f"{said['within_10_percent_on_all_hosts']:.1%} on all hosts; worst ratio "
        f"{said['worst_ratio']:.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the percentage; exit 1 below 95 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=120)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows = run(options.settings, options.seed, options.jobs)
    guesses = [row | row["by_formulas"] for row in rows]
    for way, judged_rows in (("tried", rows), ("formulas", guesses)):
        for row in judged_rows:
            if row["ratio"] < 0.9:
                print(f"{way}: miss {row['setting']}: chose {row['chosen']}, best {row['best']}, "
                      f"ratio {row['ratio']:.2f} on {row['hosts']}, "
                      f"{row['ratio_on_all_hosts']:.2f} on all hosts")  # fmt: skip
    said = summary(rows) | {
        "seconds_in_the_middle": median(row["seconds"] for row in rows),
        "seconds_at_most": max(row["seconds"] for row in rows),
        "by_formulas": summary(guesses),
    }
    print(f"tried: {told(said)}; {said['seconds_in_the_middle']:.1f} s of processor time in the "
          f"middle, {said['seconds_at_most']:.1f} at most")  # fmt: skip
    print(f"formulas alone: {told(said['by_formulas'])}")
    if options.json:
        options.json.write_text(json.dumps({"summary": said, "settings": rows}, indent=1) + "\n")
    return 0 if said["within_10_percent"] >= 0.95 else 1


if __name__ == "__main__":
    raise SystemExit(main())
