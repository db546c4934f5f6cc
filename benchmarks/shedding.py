"""What shedding costs where there is no overload, and what it gives where there is one.

python -m benchmarks.shedding [--parts step,no_overload,allotted,oracle,live,overload] [--out FILE]

Everything is done by public calls.  No overload: the same pushes into a session with and without
``shed=``, turn by turn, CPU time of each, and beside that two sessions without it.  Overload: an
exact session would need 2, 5 and 10 times the CPU there is; what a session gives per CPU second,
by policy.  The step alone is taken out of a session.
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
import pyarrow as pa
import windjoin as wj
from numpy.typing import NDArray
from windjoin.kernels.shedding.allotment import allot
from windjoin.kernels.shedding.learned import AgeWindows, Direction, HopYield

from benchmarks.pushes import endless

PAIRS, ROUNDS = 7, 4
I64 = NDArray[np.int64]
WINDOW_MS = 10_000
FIRST_ITEM = 1_000_000


def no_overload(batch: int, pushes: int, **options: Any) -> tuple[float, list[float]]:
    """Microseconds per push without options, and of pairs of sessions what those with them take.

    Where sessions lie in memory makes more of a difference than ``shed=``; so there are several
    pairs, and of each the middle of many stretches, turn by turn.
    """
    a, b = (wj.stream(name, time="ts", window="1s", unit="us") for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    each, ratios = np.inf, []
    for _ in range(PAIRS):
        rows = endless(batch, 5000)
        with query.open(rows_only=True) as plain, query.open(rows_only=True, **options) as other:
            sessions = plain, other
            taken = []
            for number in range(ROUNDS):
                made = [next(rows) for _ in range(pushes)]
                spent: list[list[float]] = [[], []]
                for first in range(0, pushes, 50):
                    # who is second finds the rows in caches
                    for which in (0, 1) if (first // 50 + number) % 2 else (1, 0):
                        start = time.thread_time()
                        for name, columns in made[first : first + 50]:
                            sessions[which].push(name, columns)
                        spent[which].append(time.thread_time() - start)
                taken.append([float(np.median(one)) for one in spent])
            without, with_options = np.median(taken[1:], axis=0)  # the first finds pages not there
            if "shed" in options:
                fraction = other.metrics["shedding"]["fraction"]
                assert fraction == 1, f"there was no overload, and {fraction} was done"
        each = min(each, without / 50 * 1e6)
        ratios.append(float(with_options / without))
    return float(each), sorted(ratios)


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
    """Streams of which b has what a had LAG_US before, with the columns of a workload.

    They go in a circle, so that they can be played over and over.
    """
    random = np.random.default_rng(seed)
    circle = seconds * 1_000_000
    made = {}
    for name, lag in (("a", 0), ("b", LAG_US)):
        t = np.sort(random.integers(0, seconds * 1_000_000, seconds * rate))
        item = (t - lag) % circle // (3_000_000 * MATCHES[kind] // rate) * 7 + random.integers(
            0, 3, len(t)
        )
        made[name] = {"t": t, **COLUMNS[kind](item + FIRST_ITEM, random)}
    return made


def _sets(item: I64, random: np.random.Generator) -> dict[str, Any]:
    """That of the item, six of 10,000; those of other items have next to nothing of it."""
    of_items = np.random.default_rng(9).integers(0, 10_000, (int(item.max()) - FIRST_ITEM + 1, 6))
    offsets = np.arange(0, 6 * len(item) + 1, 6, dtype=np.int32)
    return {"s": pa.ListArray.from_arrays(offsets, np.sort(of_items[item - FIRST_ITEM]).ravel())}


def _vectors(item: I64, random: np.random.Generator) -> dict[str, Any]:
    """Near that of the item; those of other items are far."""
    of_items = np.random.default_rng(9).normal(size=(int(item.max()) - FIRST_ITEM + 1, 16))
    noise = random.normal(0, 0.01, (len(item), 16))
    return {"v": (of_items[item - FIRST_ITEM] + noise).astype(np.float32)}


COLUMNS: dict[str, Any] = {
    "W1 equality": lambda item, random: {"k": random.integers(0, 50, len(item)), "x": item},
    "W2 band": lambda item, random: {"k": random.integers(0, 1000, len(item)), "x": item},
    "W3 sets": _sets,
    "W4 vectors": _vectors,
}
# equality and band leave a fiftieth of a window to be looked at
CONDITIONS: dict[str, Any] = {
    "W1 equality": lambda a, b: [a["k"] == b["k"], a["x"] * b["x"] == b["x"] * b["x"]],
    "W2 band": lambda a, b: [abs(a["k"] - b["k"]) <= 10, a["x"] * b["x"] == b["x"] * b["x"]],
    "W3 sets": lambda a, b: wj.overlap(a["s"], b["s"]) >= 5,
    "W4 vectors": lambda a, b: wj.l2(a["v"], b["v"]) <= 0.3,
}
# of each stream: an exact run takes about a core, many times what is done at beats
RATES = {"W1 equality": 12_000, "W2 band": 12_000, "W3 sets": 40_000, "W4 vectors": 20_000}
LAG_US, OVERLOAD_WINDOW_US, PUSH_US = 2_400_000, 4_000_000, 10_000
MATCHES = {"W1 equality": 50, "W2 band": 50, "W3 sets": 5, "W4 vectors": 5}  # of items, about


def overloaded(kind: str) -> wj.Query:
    """The join of a workload."""
    a, b = (wj.stream(n, time="t", window=OVERLOAD_WINDOW_US, unit="us") for n in "ab")
    return wj.join(a, b, on=CONDITIONS[kind](a, b))


def columns_between(columns: dict[str, Any], kind: str, begin: int, end: int) -> Any:
    """The rows of a stream between two times, as they are pushed."""
    first, past = np.searchsorted(columns["t"], [begin, end])
    rows = {key: values[first:past] for key, values in columns.items()}
    return pa.table(rows) if kind == "W3 sets" else rows


def play(kind: str, made: dict[str, dict[str, Any]], **options: Any) -> dict[str, Any]:
    """Push everything; results, CPU seconds once windows are full, and what is said of shedding."""
    end = max(int(columns["t"][-1]) for columns in made.values()) + 1
    results, spent = 0, 0.0
    with overloaded(kind).open(rows_only=True, **options) as session:
        for begin in range(0, end, PUSH_US):
            for name, columns in made.items():
                rows = columns_between(columns, kind, begin, begin + PUSH_US)
                start = time.thread_time()
                found = len(session.push(name, rows)["a"])
                if begin >= OVERLOAD_WINDOW_US:
                    spent += time.thread_time() - start
                    results += found
        metrics = session.metrics
    seconds = (end - OVERLOAD_WINDOW_US) / 1e6
    return {"results": results, "cpu": spent, "shed": metrics.get("shedding"), "seconds": seconds}


def overload(kind: str, seconds: int) -> list[dict[str, Any]]:
    """Of each policy and factor: results, CPU, recall as it was and as it was estimated."""
    made = lagging(kind, seconds, RATES[kind], 5)
    exact = play(kind, made)
    core = exact["cpu"] / exact["seconds"]
    found = []
    for factor in (2, 5, 10):
        budget = core / factor
        row: dict[str, Any] = {"kind": kind, "factor": factor, "core": core}
        for policy in ("selective", "drop"):
            shed = wj.Shedding(budget=budget, clock="event", adapt_every="1s", policy=policy)
            one = play(kind, made, shed=shed)
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


def two_ways(seconds: int, rate: int, seed: int) -> dict[str, dict[str, I64]]:
    """Streams of which each half follows what the other had some 3 s before."""
    random = np.random.default_rng(seed)
    made = {}
    for name in "ab":
        t = np.sort(random.integers(0, seconds * 1000, seconds * rate))
        kind = random.random(len(t)) < 0.5
        lag = np.where(kind == (name == "b"), 3000, 0) + random.normal(0, 400, len(t)).astype(int)
        item = (t - lag) // 20 * 7 + random.integers(0, 3, len(t))
        made[name] = {"t": t, "x": 1_000_000 + item * 2 + kind}
    return made


def in_turn(seconds: int, rate: int, seed: int) -> dict[str, dict[str, I64]]:
    """Three streams: what a has b has 1 s later, and c 2 s."""
    random = np.random.default_rng(seed)
    made = {}
    for name, lag in (("a", 0), ("b", 1000), ("c", 2000)):
        t = np.sort(random.integers(0, seconds * 1000, seconds * rate))
        made[name] = {
            "t": t, "x": 1_000_000 + (t - lag) // 50 * 7 + random.integers(0, 3, len(t))
        }  # fmt: skip
    return made


def three_scanned() -> wj.Query:
    """A join of three streams that looks at every row of the windows."""
    a, b, c = (wj.stream(name, time="t", window="4s", unit="ms") for name in "abc")
    return wj.join(
        a, b, c, on=[a["x"] * b["x"] == b["x"] * b["x"], b["x"] * c["x"] == c["x"] * c["x"]]
    )


def allotted(factor: float, seeds: int) -> dict[str, dict[str, list[float]]]:
    """Recall by seed: by pairs of direction and basic window, algorithm 4, the same everywhere."""
    ways: dict[str, Any] = {"pairs": True, "algorithm 4": "whole", "the same everywhere": False}
    found: dict[str, dict[str, list[float]]] = {}
    for name, query, make, rate in (
        ("two ways", scanned(), two_ways, 120), ("three streams", three_scanned(), in_turn, 40)
    ):  # fmt: skip
        found[name] = {way: [] for way in ways}
        for seed in range(seeds):
            streams = make(40, rate, seed)
            exact, compared = _played(query, streams)
            for way, directions in ways.items():
                shed = wj.Shedding(
                    comparisons_per_s=compared / 37 / factor, clock="event", seed=seed,
                    directions=directions,
                )  # fmt: skip
                found[name][way].append(_played(query, streams, shed=shed)[0] / exact)
    return found


def _played(query: wj.Query, streams: dict[str, Any], **options: Any) -> tuple[int, int]:
    """Results and comparisons."""
    with query.open(rows_only=True, **options) as session:
        for begin in range(0, 40_000, 250):
            for name, columns in streams.items():
                first, past = np.searchsorted(columns["t"], [begin, begin + 250])
                session.push(name, {key: v[first:past] for key, v in columns.items()})
        return session.metrics["results"], session.metrics["comparisons"]


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


def _step(_: argparse.Namespace) -> Any:
    us = step_us()
    print(f"adaptation step, 3 streams x 200 basic windows: {us:.0f} us", flush=True)
    return us


def _no_overload(_: argparse.Namespace) -> Any:
    found = {}
    for batch, pushes in ((64, 60_000), (1024, 6_000)):
        for name, others in (("shed=", {"shed": wj.Shedding(budget=50.0)}), ("neither", {})):
            us, ratios = found[f"{batch} {name}"] = no_overload(batch, pushes, **others)
            least, middle, most = ratios[0] - 1, np.median(ratios) - 1, ratios[-1] - 1
            told = f"{middle:+.1%}, of pairs {least:+.1%} to {most:+.1%}"
            print(f"{batch} rows a push, {us:.2f} us; {name}: {told}", flush=True)
    return found


def _allotted(options: argparse.Namespace) -> Any:
    found = allotted(4, options.seeds)
    for name, ways in found.items():
        told = ", ".join(
            f"{way} {np.mean(r):.0%} ({min(r):.0%} to {max(r):.0%})" for way, r in ways.items()
        )
        print(f"{name}, a quarter of the work: recall by {told}", flush=True)
    return found


def _oracle(options: argparse.Namespace) -> Any:
    found = {}
    for rate in (60, 200):
        pairs = found[rate] = against_oracle(options.seeds, rate=rate)
        told = ", ".join(f"{one:.1%} {other:.1%}" for one, other in pairs)
        print(f"{rate} rows/s: recall at half the comparisons, and of an oracle: {told};"
              f" mean {np.mean([one for one, _ in pairs]):.1%}", flush=True)  # fmt: skip
    return found


def _live(options: argparse.Namespace) -> Any:
    found = []
    for factor in (2, 5):
        one = live(factor, options.seconds)
        found.append(one)
        told = ", ".join(f"{k} {v:.3g}" for k, v in one.items())
        print("rows as the clock passes: " + told, flush=True)
    return found


def _overload(options: argparse.Namespace) -> Any:
    found = []
    for kind in COLUMNS:
        for row in overload(kind, options.overload_seconds):
            found.append(row)
            one, other = row["selective"], row["drop"]
            print(
                f"{kind} ({row['core']:.0%} of a core) x{row['factor']}: recall {one['recall']:.0%}"
                f" (told {one['estimated']:.0%}) against {other['recall']:.0%}, of the budget"
                f" {one['of_budget']:.2f} and {other['of_budget']:.2f},"
                f" results per CPU second {row['ratio']:.2f} times",
                flush=True,
            )
    return found


PARTS = {
    "step": _step, "no_overload": _no_overload, "allotted": _allotted, "oracle": _oracle,
    "live": _live, "overload": _overload,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the figures as JSON, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--overload-seconds", type=int, default=9)
    parser.add_argument("--parts", help="some of: " + ", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", wj.SheddingWarning)
    data: dict[str, Any] = {}
    for part in options.parts.split(",") if options.parts else PARTS:
        data[part] = PARTS[part](options)
    if options.out:
        options.out.write_text(json.dumps(data) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
