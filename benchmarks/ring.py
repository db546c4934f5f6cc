"""A function that takes 1 ms a pair: how soon does a row have its answer, by strategy?

    python -m benchmarks.ring --out benchmarks/results/ring

A session with ``hosts=`` gets one segment of rows per push and joins it before the push returns:
what a push takes is how long its rows wait.  On two hosts that is measured by the clock; on eight,
which two cores cannot show, by the processor seconds of the busiest host for a push.  All
strategies give the same results, and each compares the same pairs (those that it compares twice
are its overhead).
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

from benchmarks.measure import machine

STRATEGIES = ("psp", "atr", "ctr")
WINDOW, SEGMENT = 64, 4
SCHEMA = pa.schema({"t": pa.int64(), "x": pa.float64()})


def slow_pair(x: float, y: float) -> bool:
    """Whether two numbers are near, found out as slowly as two pictures are compared."""
    total = 0.0
    for step in range(30_000):
        total += math.sin(x + step) * math.cos(y - step)
    return abs(x - y) < 0.1 + 1e-12 * total


def query() -> wj.Query:
    a, b = (wj.stream(name, time="t", window=WINDOW) for name in "ab")
    return wj.join(a, b, on=wj.udf(slow_pair, a["x"], b["x"]))


def rows(segments: int, warm: int, per: int) -> list[dict[str, pa.Table]]:
    """A push of each stream for each segment; the first ones, which fill the window, are sparse."""
    chance = np.random.default_rng(3)
    found = []
    for number in range(warm + segments):
        n = per
        found.append(
            {
                name: pa.table(
                    {
                        "t": np.sort(chance.integers(0, SEGMENT, n)) + number * SEGMENT,
                        "x": chance.random(n),
                    },
                    schema=SCHEMA,
                )
                for name in "ab"
            }
        )
    return found


def run(strategy: str, hosts: int, pushes: list[dict[str, pa.Table]], warm: int) -> dict[str, Any]:
    """Seconds of each push once the window is full, and of each host what it worked for them."""
    tuning = wj.Tuning(adapt=False)
    waited, busiest, results = [], [], 0
    with query().open(
        dict.fromkeys("ab", SCHEMA), hosts=hosts, strategy=strategy, segment=SEGMENT,
        rows_only=True, tuning=tuning,
    ) as session:  # fmt: skip
        before: dict[int, float] = {}
        for number, push in enumerate(pushes):
            session.push("a", push["a"])
            began = perf_counter()
            results += len(session.push("b", push["b"])["a"])
            took = perf_counter() - began
            now = {one["host"]: one["cpu_seconds"] for one in session.metrics["hosts"]}
            if number >= warm:
                waited.append(took)
                busiest.append(max(now[n] - before.get(n, 0.0) for n in now))
            before = now
        compared = session.metrics["comparisons"]
        results += len(session.close()["a"])
    return {
        "strategy": strategy,
        "hosts": hosts,
        "wait_ms": [1e3 * float(np.percentile(waited, q)) for q in (50, 95)],
        "busiest_host_cpu_ms": [1e3 * float(np.percentile(busiest, q)) for q in (50, 95)],
        "compared": compared,
        "results": results,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pushes", type=int, default=16)
    parser.add_argument("--rows", type=int, default=2, help="of each stream in a push")
    asked = parser.parse_args()
    warm = WINDOW // SEGMENT
    pushes = rows(asked.pushes, warm, asked.rows)
    run("single", 1, pushes[:2], 0)  # compiles
    found = []
    for hosts in (2, 8):
        for strategy in STRATEGIES:
            row = run(strategy, hosts, pushes, warm)
            found.append(row)
            print(json.dumps(row), flush=True)
        assert len({row["results"] for row in found}) == 1, found
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"machine": machine(), "rows": found}, indent=1)
        (asked.out / "ring.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
