"""A host of four becomes slow: what does that cost, against shares that fit from the start?

    python -m benchmarks.slowed --out benchmarks/results/slowed

A session with ``hosts=4`` joins the same rows with no slow host, with one that takes 20 ms longer
for every call, and with one that takes twice as long.  What cannot be beaten is taken from runs in
which shares are fixed: the slow host removed before the first row, or declared half as fast.
"""

from __future__ import annotations

import argparse
import json
import math
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
from windjoin.testing import slow

from benchmarks.measure import machine

STRATEGIES = ("atr", "ctr", "psp", "groups")
HOSTS = 4
SEGMENT = 500
WINDOW = 1_000
ROWS_PER_TICK = 4


def query() -> Any:
    """Comparisons that cost enough for hosts to be worth it, and a key for groups."""
    a, b = (wj.stream(name, time="t", window=WINDOW) for name in "ab")
    near = wj.udf(lambda x, y: math.sin(x) * math.cos(y) > 0.999, a["x"], b["x"])
    return wj.join(a, b, on=[a["k"] == b["k"], near])


def tables(ticks: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(3)
    rows = ticks * ROWS_PER_TICK
    return {
        name: pa.table(
            {
                "t": np.sort(chance.integers(0, ticks, rows)),
                "k": chance.integers(0, 64, rows),
                "x": chance.random(rows) * 10,
            }
        )
        for name in "ab"
    }


def run(given: dict[str, pa.Table], strategy: str, *, by: Any = None, without: bool = False) -> Any:
    """Seconds, results, and each host's share of the rows after the first fifth."""
    schemas = {name: rows.schema for name, rows in given.items()}
    ticks = given["a"]["t"][-1].as_py()
    step = SEGMENT
    with ExitStack() as stack:
        session = stack.enter_context(
            query().open(schemas, hosts=HOSTS, strategy=strategy, segment=SEGMENT, rows_only=True)
        )
        if without:
            session.remove_host(0)
        elif by is not None:
            slow(session, host=0, by=by)
        began, found, shares = perf_counter(), 0, []
        at = dict.fromkeys(given, 0)
        stored = [0] * HOSTS
        for stop in range(step, ticks + step, step):
            for name, rows in given.items():
                upto = int(np.searchsorted(rows["t"].to_numpy(), stop))
                piece = rows.slice(at[name], upto - at[name])
                at[name] = upto
                found += len(session.push(name, piece)["a"])
            now = [0] * HOSTS
            for one in session.metrics["cluster"]["hosts"]:
                now[one["host"]] = one["rows_stored"]
            fresh = [n - s for n, s in zip(now, stored, strict=True)]
            stored = now
            shares.append([round(n / max(sum(fresh), 1), 3) for n in fresh])
        found += len(session.close()["a"])
        return perf_counter() - began, found, shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--ticks", type=int, default=30_000)
    parser.add_argument("--strategies", nargs="*", default=STRATEGIES)
    asked = parser.parse_args()
    given = tables(asked.ticks)
    rows = []
    for strategy in asked.strategies:
        run(given, strategy)  # compiles
        even, results, _ = run(given, strategy)
        three, found, _ = run(given, strategy, without=True)
        assert found == results
        for by in ("20ms", 2.0):
            took, found, shares = run(given, strategy, by=by)
            assert found == results, (strategy, by, found, results)
            best = three if by == "20ms" else min(three, even * HOSTS / (HOSTS - 0.5))
            row = {
                "strategy": strategy,
                "by": by,
                "even_s": round(even, 3),
                "three_hosts_s": round(three, 3),
                "slowed_s": round(took, 3),
                "times_best": round(took / best, 2),
                "share_of_host_0": [s[0] for s in shares],
            }
            rows.append(row)
            print(json.dumps(row))
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"machine": machine(), "rows": rows}, indent=1)
        (asked.out / "slowed.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
