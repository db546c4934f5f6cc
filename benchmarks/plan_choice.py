"""How near the plan that `windjoin.plan` chooses is to the best of those it looked at, as measured.

    python -m benchmarks.plan_choice --queries 40 --out benchmarks/results/plan_choice

Random queries of three streams with random rates, keys and values.  Plans are run by sessions that
are pinned to them, in turn, on the same rows in order of time; the least thread time counts.
"""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
from numpy.random import Generator

from benchmarks.measure import headline, keep, load_now, machine

NAMES = ("a", "b", "c")
MOST_PLANS = 12  # of a query: the chosen one, and others drawn at random
STEP = 100  # of time in a push of every stream
NEAR = 1.15  # times the best
Tables = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Choice:
    """One query: what its plans took."""

    query: str
    rows: int
    results: int
    plans: int
    chosen: float  # nanoseconds a row
    best: float
    middle: float
    worst: float

    @property
    def ratio(self) -> float:
        """Chosen over best."""
        return self.chosen / self.best


def tables(random: Generator) -> tuple[dict[str, float], Tables]:
    """Rates, and rows of 4000 ticks."""
    rates = {name: float(10 ** random.uniform(-0.7, 0.5)) for name in NAMES}
    keys, found = int(10 ** random.uniform(0.7, 3)), {}
    for name, rate in rates.items():
        n = int(4000 * rate)
        found[name] = {
            "t": np.sort(random.integers(0, 4000, n)),
            "k": random.integers(0, keys, n),
            "x": random.random(n),
            "y": random.random(n) ** random.uniform(0.5, 3),
        }
    return rates, found


def query(random: Generator) -> wj.Query:
    """Conditions between two pairs of streams, or all three."""
    streams = [wj.stream(name, time="t", window=int(random.integers(50, 400))) for name in NAMES]
    pairs = [(0, 1), (1, 2), (0, 2)]
    random.shuffle(pairs)
    on: list[Any] = []
    for left, right in pairs[: int(random.integers(2, 4))]:
        one, other = streams[left], streams[right]
        kind = random.choice(["key", "band", "less"], p=[0.4, 0.4, 0.2])
        if kind == "key":
            on.append(one["k"] == other["k"])
        elif kind == "band":
            on.append(abs(one["x"] - other["y"]) <= round(float(10 ** random.uniform(-3, -1)), 4))
        else:
            on.append(one["x"] < other["y"] * round(float(random.uniform(0.05, 0.5)), 3))
    return wj.join(*streams, on=on, select=[streams[0]["t"]])


def taken(asked: wj.Query, plan: Any, rows: Tables) -> tuple[int, int]:
    """Nanoseconds and results of a session that keeps to a plan."""
    spent = found = 0
    starts = np.arange(0, 4000, STEP)
    cuts = {name: np.searchsorted(table["t"], [*starts, 4000]) for name, table in rows.items()}
    gc.collect()
    with asked.open(schemas_of(rows), plan=plan, pin=True) as session:
        for at in range(len(starts)):
            for name, table in rows.items():
                part = {c: v[cuts[name][at] : cuts[name][at + 1]] for c, v in table.items()}
                before = time.thread_time_ns()
                found += session.push(name, part).num_rows
                spent += time.thread_time_ns() - before
    return spent, found


def schemas_of(rows: Tables) -> dict[str, Any]:
    """The types of the columns."""
    return {
        name: pa.schema([(c, pa.from_numpy_dtype(v.dtype)) for c, v in table.items()])
        for name, table in rows.items()
    }


def judge(seed: int, rounds: int) -> Choice | None:
    """One random query; None: it has too few results or too many to tell its plans apart."""
    random = np.random.default_rng(seed)
    asked = query(random)
    rates, rows = tables(random)
    plan = wj.plan(asked, rates=rates, statistics=rows)
    total = sum(len(table["t"]) for table in rows.values())
    if not 0.01 * total < plan.output_rate * 4000 < 30 * total:
        return None
    first, *others = [one for one in plan.alternatives if one.kind == "hops" and one.hosts == 1]
    random.shuffle(others)
    ways = [plan.taking(one) for one in (first, *others[: MOST_PLANS - 1])]
    least, found = [float("inf")] * len(ways), set()
    for _ in range(rounds):
        for at, way in enumerate(ways):
            spent, results = taken(asked, way, rows)
            least[at] = min(least[at], spent / total)
            found.add(results)
    if len(found) != 1:
        raise SystemExit(f"seed {seed}: plans of one query found {sorted(found)} results")
    told = " and ".join(str(one) for one in asked.on)
    return Choice(
        told, total, found.pop(), len(ways), least[0], min(least), float(np.median(least)),
        max(least),
    )  # fmt: skip


def markdown(about: dict[str, Any], every: list[Choice]) -> str:
    """The figures for people."""
    ratios = np.array([one.ratio for one in every])
    lines = [
        "# Chosen plans beside the best of those looked at", "", headline(about), "",
        f"{len(every)} random queries of three streams: the chosen plan takes at most {NEAR} times"
        f" the best in {100 * np.mean(ratios <= NEAR):.0f} %, at most {ratios.max():.2f} times,"
        f" {np.median(ratios):.2f} times in the middle. Nanoseconds a row:", "",
        "| query | results a row | plans | chosen | best | middle | worst |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    lines += [
        f"| `{x.query.replace('|', chr(92) + '|')}` | {x.results / x.rows:.2f} | {x.plans}"
        f" | {x.chosen:,.0f} | {x.best:,.0f} | {x.middle:,.0f} | {x.worst:,.0f} |"
        for x in every
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_choice", description=__doc__)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    options = parser.parse_args()
    about = machine()
    every: list[Choice] = []
    seed = options.seed
    while len(every) < options.queries:
        one = judge(seed, options.rounds)
        seed += 1
        if one is not None:
            every.append(one)
    about["load_after"] = load_now()
    keep(options.out, "plan_choice", about, markdown(about, every), [asdict(x) for x in every])


if __name__ == "__main__":
    main()
