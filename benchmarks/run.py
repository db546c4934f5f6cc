"""Time windjoin and its peers on named workloads, and write table, figures and chart.

    python -m benchmarks.run --workloads W1,W2 --peers duckdb,polars:bucket --threads 1,2 \\
        --repeat 3 --out benchmarks/results/mine

What the folder holds of other workloads, engines and threads stays in the table.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.contest import Limits, Measurement, contest
from benchmarks.measure import machine
from benchmarks.peers import OURS, PEERS, jobs
from benchmarks.workloads import WORKLOADS


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Time windjoin and its peers."
    )
    parser.add_argument("--workloads", default="W1,W1s,W2,W5,W7", help=", ".join(WORKLOADS))
    parser.add_argument("--peers", default=",".join(PEERS), help="peer or peer:variant, or none")
    parser.add_argument("--threads", default="1", help="numbers of threads, such as 1,2")
    parser.add_argument("--repeat", type=int, default=3, help="runs after the warm-up")
    parser.add_argument("--memory", type=float, default=8.0, help="GB one engine may take")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one run of one engine")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    chosen.workloads = chosen.workloads.split(",")
    chosen.peers = [p for p in chosen.peers.split(",") if p and p != "none"]
    chosen.threads = [int(n) for n in chosen.threads.split(",")]
    if unknown := [name for name in chosen.workloads if name not in WORKLOADS]:
        parser.error(f"unknown workloads {unknown}; there are {', '.join(WORKLOADS)}")
    if unknown := [p for p in chosen.peers if p.split(":")[0] not in PEERS]:
        parser.error(f"unknown peers {unknown}; there are {', '.join(PEERS)}")
    if chosen.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {chosen.repeat}")
    return chosen


def plan(workload: str, peers: list[str], threads: int) -> list[Measurement]:
    """List who runs a workload: windjoin first, then every asked-for variant of every peer."""
    found = [Measurement(workload, OURS, "table" if workload == "W1_payload" else "rows", threads)]
    for peer in peers:
        engine, _, only = peer.partition(":")
        for variant in jobs(engine).get(workload, {}):
            # pandas has one thread: a second figure would only repeat the first
            if only in ("", variant) and (engine != "pandas" or threads == 1):
                found.append(Measurement(workload, engine, variant, threads))
    return found


def main() -> int:
    """Measure what the command line asks for."""
    chosen, console = arguments(), Console()
    limits = Limits(int(chosen.memory * 1e9), chosen.seconds)
    before = machine()
    plans = [plan(w, chosen.peers, n) for w in chosen.workloads for n in chosen.threads]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        total = sum(len(p) * (chosen.repeat + 2) for p in plans)
        task = progress.add_task("", total=total)
        for measurements in plans:
            contest(
                measurements, limits, chosen.repeat,
                lambda text: progress.update(task, advance=1, description=text),
            )  # fmt: skip
    measured = [m for measurements in plans for m in measurements]
    everything = report.kept(chosen.out, measured)
    paths = report.write(chosen.out, before, round(os.getloadavg()[0], 2), everything)
    console.print((chosen.out / "results.md").read_text(), soft_wrap=True, markup=False)
    console.print("written: " + ", ".join(map(str, paths)), soft_wrap=True)
    return int(any(m.note.startswith("wrong") for m in measured))


if __name__ == "__main__":
    raise SystemExit(main())
