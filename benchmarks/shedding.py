"""What shedding costs where there is no overload, and what it gives where there is one.

python -m benchmarks.shedding [--seconds 8]

Everything is done by public calls.  No overload: the same pushes into a session with and without
``shed=``, turn by turn, CPU time of each.  Overload: an exact session would need 2, 5 and 10 times
the CPU there is; what a session gives per CPU second, by policy.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import windjoin as wj
from numpy.typing import NDArray
from windjoin.kernels.shedding.allotment import allot
from windjoin.kernels.shedding.learned import AgeWindows, Direction, HopYield

from benchmarks.pushes import endless

ROUNDS = 7
I64 = NDArray[np.int64]
LAG_MS = 6000
WINDOW_MS = 10_000


def no_overload(batch: int, pushes: int) -> tuple[float, float]:
    """Microseconds per push without and with ``shed=``: the least of several rounds."""
    a, b = (wj.stream(name, time="ts", window="1s", unit="us") for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    best = [np.inf, np.inf]
    rows = endless(batch, 5000)
    with (
        query.open(rows_only=True) as plain,
        query.open(rows_only=True, shed=wj.Shedding(budget=50.0)) as shedding,
    ):
        sessions = plain, shedding
        for number in range(ROUNDS):
            made = [next(rows) for _ in range(pushes)]
            spent = [0.0, 0.0]
            for first in range(0, pushes, 50):
                # who is second finds the rows in caches
                for which in (0, 1) if (first // 50 + number) % 2 else (1, 0):
                    start = time.thread_time()
                    for name, columns in made[first : first + 50]:
                        sessions[which].push(name, columns)
                    spent[which] += time.thread_time() - start
            best = [min(one, other / pushes * 1e6) for one, other in zip(best, spent, strict=True)]
        fraction = shedding.metrics["shedding"]["fraction"]
        assert fraction == 1, f"there was no overload, and {fraction} was done"
    return best[0], best[1]


def step_us(windows: int = 200, streams: int = 3) -> float:
    """Microseconds to allot work to all basic windows of some streams: the least of many."""
    random = np.random.default_rng(1)
    directions = []
    for _ in range(streams):
        hops = [HopYield(AgeWindows(10, 0, 10 * windows - 1)) for _ in range(streams - 1)]
        for hop in hops:
            hop.proposed += random.random(windows) * 50
            hop.found += random.poisson(0.3, windows)
        for hop in hops[:-1]:
            hop.arrived = random.random(windows) * 3
        directions.append(Direction(hops, rows=20.0, each=50.0))
    taken = []
    for _ in range(200):
        start = time.perf_counter()
        allot(directions, 0.3)
        taken.append(time.perf_counter() - start)
    return min(taken) * 1e6


def lagging(kind: str, seconds: int, rate: int, seed: int) -> dict[str, dict[str, Any]]:
    """Streams of which b has what a had LAG_MS before, with the columns of a workload."""
    random = np.random.default_rng(seed)
    made = {}
    for name, lag in (("a", 0), ("b", LAG_MS)):
        t = np.sort(random.integers(0, seconds * 1000, seconds * rate))
        item = (t - lag) // 20 * 7 + random.integers(0, 3, len(t)) + 1_000_000
        made[name] = {"t": t, **COLUMNS[kind](item, random)}
    return made


def _vectors(item: I64, random: np.random.Generator) -> dict[str, Any]:
    angle = (item[:, None] * np.arange(1, 17)) * 0.7391
    return {"v": (np.sin(angle) + random.normal(0, 0.01, angle.shape)).astype(np.float32)}


COLUMNS: dict[str, Any] = {
    "W1 equality": lambda item, random: {"k": item},
    "W2 band": lambda item, random: {"x": item * 10 + random.integers(-3, 4, len(item))},
    "W3 sets": lambda item, random: {
        "s": [row.tolist() for row in item[:, None] * 11 % 997 + np.arange(6) ** 2]
    },
    "W4 vectors": _vectors,
}
CONDITIONS: dict[str, Any] = {
    "W1 equality": lambda a, b: a["k"] == b["k"],
    "W2 band": lambda a, b: abs(a["x"] - b["x"]) <= 7,
    "W3 sets": lambda a, b: wj.overlap(a["s"], b["s"]) >= 5,
    "W4 vectors": lambda a, b: wj.l2(a["v"], b["v"]) <= 0.3,
}
RATES = {"W1 equality": 20_000, "W2 band": 10_000, "W3 sets": 1_500, "W4 vectors": 1_500}


def play(kind: str, made: dict[str, dict[str, Any]], each: int, **options: Any) -> dict[str, Any]:
    """Push everything; results, CPU seconds, and what is said of shedding."""
    a, b = (wj.stream(name, time="t", window=f"{WINDOW_MS}ms", unit="ms") for name in "ab")
    query = wj.join(a, b, on=CONDITIONS[kind](a, b))
    end = max(int(columns["t"][-1]) for columns in made.values()) + 1
    results, spent = 0, 0.0
    with query.open(rows_only=True, **options) as session:
        for begin in range(0, end, each):
            for name, columns in made.items():
                first, past = np.searchsorted(columns["t"], [begin, begin + each])
                if past == first:
                    continue
                rows = {key: values[first:past] for key, values in columns.items()}
                start = time.thread_time()
                results += len(session.push(name, rows)["a"])
                spent += time.thread_time() - start
        metrics = session.metrics
    return {"results": results, "cpu": spent, "shed": metrics.get("shedding"), "seconds": end / 1e3}


def overload(kind: str, seconds: int) -> list[dict[str, Any]]:
    """Of each policy and factor: results, CPU, recall as it was and as it was estimated."""
    made = lagging(kind, seconds, RATES[kind], 5)
    exact = play(kind, made, 50)
    found = []
    for factor in (2, 5, 10):
        budget = exact["cpu"] / exact["seconds"] / factor
        row: dict[str, Any] = {"kind": kind, "factor": factor, "exact": exact["results"]}
        for policy in ("selective", "drop"):
            shed = wj.Shedding(budget=budget, clock="event", adapt_every="2s", policy=policy)
            one = play(kind, made, 50, shed=shed)
            row[policy] = {
                "recall": one["results"] / exact["results"],
                "estimated": one["shed"]["recall"],
                "of_budget": one["cpu"] / one["seconds"] / budget,
                "per_cpu_second": one["results"] / one["cpu"],
            }
        row["ratio"] = row["selective"]["per_cpu_second"] / row["drop"]["per_cpu_second"]
        found.append(row)
    return found


def spread_out(seconds: int, rate: int, seed: int) -> dict[str, dict[str, I64]]:
    """Streams of which b has what a had some time before: mostly 2 s, often any time."""
    random = np.random.default_rng(seed)
    made = {}
    for name in "ab":
        t = np.sort(random.integers(0, seconds * 1000, seconds * rate))
        lag = np.rint(random.exponential(2000, len(t))).astype(np.int64) * (name == "b")
        made[name] = {"t": t, "x": (t - lag) // 20 * 7 + random.integers(0, 3, len(t)) + 1_000_000}
    return made


def scanned() -> wj.Query:
    """A join that looks at every row of the windows."""
    a, b = (wj.stream(name, time="t", window=f"{WINDOW_MS}ms", unit="ms") for name in "ab")
    return wj.join(a, b, on=a["x"] * b["x"] == b["x"] * b["x"])


def best_recall(made: dict[str, dict[str, I64]], windows: int, share: float) -> float:
    """The recall of who knows what each basic window is worth, and compares with the best ones."""
    width = WINDOW_MS // windows
    found, compared = np.zeros(2 * windows), np.zeros(2 * windows)
    a, b = made["a"], made["b"]
    for t, x in zip(b["t"].tolist(), b["x"].tolist(), strict=True):
        first, past = np.searchsorted(a["t"], [t - WINDOW_MS, t + WINDOW_MS])
        age = np.clip((t - a["t"][first:past]) // width + windows, 0, 2 * windows - 1)
        compared += np.bincount(age, minlength=2 * windows)
        found += np.bincount(age[a["x"][first:past] == x], minlength=2 * windows)
    order = np.argsort(-found / np.maximum(compared, 1))
    spent, gained = np.cumsum(compared[order]), np.cumsum(found[order])
    return float(np.interp(share * spent[-1], spent, gained) / gained[-1])


def against_oracle(seeds: int, seconds: int = 40, rate: int = 60) -> list[tuple[float, float]]:
    """At half the comparisons of an exact run: recall, and that of the oracle; by seed."""
    found = []
    for seed in range(seeds):
        made = spread_out(seconds, rate, seed)
        counts = []
        needed = 0.0
        for options in ({}, {"share": 0.5}):
            results = 0
            shed = wj.Shedding(comparisons_per_s=needed / 2 or 1e12, clock="event", seed=seed)
            with scanned().open(rows_only=True, shed=shed) as session:
                for begin in range(0, seconds * 1000, 250):
                    for name, columns in made.items():
                        first, past = np.searchsorted(columns["t"], [begin, begin + 250])
                        rows = {key: values[first:past] for key, values in columns.items()}
                        got = len(session.push(name, rows)["a"])
                        results += got if begin >= WINDOW_MS else 0
                metrics = session.metrics
            counts.append(results)
            if not options:
                full = metrics["comparisons"] / (seconds - WINDOW_MS / 2000)
                needed = float(full)
        found.append((counts[1] / counts[0], best_recall(made, 50, 0.5)))
    return found


def live(factor: float, seconds: float, budget: float = 0.4) -> dict[str, float]:
    """Rows that come as the clock passes, ``factor`` times too many: what is spent, who waits."""
    period, each, trial = 1.0, 0.05, 1000
    query = scanned()
    spent = []
    for length in (20, 30):  # seconds; what a second takes once windows are full
        made = spread_out(length, trial, 5)
        with query.open(rows_only=True) as session:
            start = time.thread_time()
            for begin in range(0, length * 1000, 50):
                for name, columns in made.items():
                    first, past = np.searchsorted(columns["t"], [begin, begin + 50])
                    session.push(name, {key: v[first:past] for key, v in columns.items()})
            spent.append(time.thread_time() - start)
    second = (spent[1] - spent[0]) / 10
    rate = int(trial * (factor * budget / second) ** 0.5)  # it grows with the square
    tables = spread_out(int(seconds) + 1, rate, 6)
    shed = wj.Shedding(budget=budget, adapt_every=f"{period}s")
    waits, cpu = [], []
    with query.open(rows_only=True, shed=shed) as session:
        start = time.perf_counter()
        for turn in range(int(seconds / each)):
            due = start + (turn + 1) * each
            if (early := due - time.perf_counter()) > 0:
                time.sleep(early)
            before = time.thread_time()
            for name, columns in tables.items():
                first, past = np.searchsorted(columns["t"], [turn * 50, turn * 50 + 50])
                session.push(name, {key: values[first:past] for key, values in columns.items()})
            cpu.append((time.perf_counter() - start, time.thread_time() - before))
            waits.append(time.perf_counter() - due)
        told = session.metrics["shedding"]
    late = [used for at, used in cpu if at > 5 * period]
    took = cpu[-1][0] - 5 * period
    return {
        "factor": factor, "rate": rate, "of_budget": sum(late) / took / budget,
        "longest_wait_periods": max(waits) / period, "fraction": told["fraction"],
        "load": told["load"],
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the figures as JSON, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", wj.SheddingWarning)
    data: dict[str, Any] = {"step_us": step_us(), "no_overload": {}, "overload": []}
    print(f"adaptation step, 3 streams x 200 basic windows: {data['step_us']:.0f} us")
    for batch, pushes in ((64, 8000), (1024, 1000)):
        without, with_shed = no_overload(batch, pushes)
        data["no_overload"][batch] = [without, with_shed]
        print(f"{batch} rows a push: {without:.2f} us without, {with_shed:.2f} with shed="
              f" ({with_shed / without - 1:+.1%})", flush=True)  # fmt: skip
    pairs = data["oracle"] = against_oracle(5)
    print("recall at half the comparisons, and of an oracle: "
          + ", ".join(f"{one:.1%} {other:.1%}" for one, other in pairs), flush=True)  # fmt: skip
    data["live"] = [live(factor, options.seconds) for factor in (2, 5)]
    for one in data["live"]:
        print("rows as the clock passes: " + ", ".join(f"{k} {v:.3g}" for k, v in one.items()),
              flush=True)  # fmt: skip
    for kind in COLUMNS:
        for row in overload(kind, options.seconds):
            data["overload"].append(row)
            one, other = row["selective"], row["drop"]
            print(
                f"{kind} x{row['factor']}: recall {one['recall']:.0%} (told"
                f" {one['estimated']:.0%}) against {other['recall']:.0%}, of the budget"
                f" {one['of_budget']:.2f} and {other['of_budget']:.2f},"
                f" results per CPU second {row['ratio']:.2f} times",
                flush=True,
            )
    if options.out:
        options.out.write_text(json.dumps(data) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
