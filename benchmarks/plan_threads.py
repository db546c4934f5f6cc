"""How much sooner whole tables are joined by several threads: measured, and as plans say.

    python -m benchmarks.plan_threads --out benchmarks/results/plan_threads

Row numbers come out.  Runs on one thread and on several take turns; the least time of the rounds
counts, by the clock and by the processor time of all threads.  The clock needs a machine that has
nothing else to do.
"""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import windjoin as wj

from benchmarks.measure import headline, keep, load_now, machine
from benchmarks.peers import letters
from benchmarks.plan_costs import STRETCHES, numbered, stretched
from benchmarks.workloads import WORKLOADS

NAMES = ("W1", "W2", "W3", "W4", "W5")
MOST_ROWS = 1_500_000  # of a stream: so that runs take much longer than threads take to begin


@dataclass(frozen=True, slots=True)
class Line:
    """One workload on so many threads, against one."""

    workload: str
    threads: int
    one_ms: float  # by the clock
    several_ms: float
    sooner: float  # times, by the clock
    sooner_planned: float
    cost: float  # times the processor time
    cost_planned: float


def timed(query: wj.Query, tables: Any, threads: int) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    gc.collect()
    cpu, clock = time.process_time(), time.perf_counter()
    query.run(tables, threads=threads)
    return time.perf_counter() - clock, time.process_time() - cpu


def measure(name: str, threads: int, rounds: int) -> Line:
    """Plan and run one workload."""
    workload = WORKLOADS[name]
    query, names = numbered(workload), letters(workload.streams)
    tables = [stretched(table, STRETCHES.get(name, 1)) for table in workload.tables()]
    whole = {n: t.slice(0, MOST_ROWS) for n, t in zip(names, tables, strict=True)}
    times = [table["ts"] for table in whole.values()]
    ticks = max(t[-1].as_py() for t in times) - min(t[0].as_py() for t in times)
    # whole streams of integers: their unit of time is a tick
    rates = {n: t.num_rows / ticks for n, t in whole.items()}
    plan = wj.plan(query, rates=rates, statistics=whole, threads=threads)
    planned = {one.threads: one for one in plan.batch.alternatives}
    runs = [(timed(query, whole, 1), timed(query, whole, threads)) for _ in range(rounds + 1)]
    clocks, costs = (
        [min(run[way][of] for run in runs) for way in (0, 1)] for of in (0, 1)
    )  # fmt: skip
    return Line(
        name, threads, clocks[0] * 1e3, clocks[1] * 1e3, clocks[0] / clocks[1],
        planned[1].elapsed / planned[threads].elapsed, costs[1] / costs[0],
        planned[threads].cost / planned[1].cost,
    )  # fmt: skip


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    text = [
        headline(before), "",
        "| workload | threads | ms on one | ms on these | times sooner | planned"
        " | times the CPU | planned |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    text += [
        f"| {x.workload} | {x.threads} | {x.one_ms:,.1f} | {x.several_ms:,.1f} | {x.sooner:.2f}"
        f" | {x.sooner_planned:.2f} | {x.cost:.2f} | {x.cost_planned:.2f} |"
        for x in lines
    ]
    return "\n".join([*text, ""])


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_threads", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = [measure(name, chosen.threads, chosen.rounds) for name in chosen.names or NAMES]
    before["load_after"] = load_now()
    keep(chosen.out, "plan_threads", before, markdown(before, lines), [asdict(x) for x in lines])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
