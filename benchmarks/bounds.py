"""What a run of ours may cost beside another run of ours: text keys, threads, payload, memory.

    python -m benchmarks.bounds --out benchmarks/results/bounds

Runs that are compared take turns in one process, round by round; the least time of each counts.
Memory is the greatest resident size of a fresh process above what it held before the call.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import headline, keep, load_now, machine, measured
from benchmarks.ours import JOBS
from benchmarks.peers import Job, letters
from benchmarks.queries import query
from benchmarks.workloads import WORKLOADS

MEMORY = ("W1", "W1_text", "W1_payload", "W1s", "keys_hot", "times_equal")
MEMORY_BOUND = 1.5


@dataclass(frozen=True, slots=True)
class Line:
    """One quotient with its bound."""

    about: str
    quotient: float
    bound: float
    least: bool  # the quotient must be at least the bound, not at most
    figures: str

    @property
    def holds(self) -> bool:
        """Say whether the quotient is where it must be."""
        return self.quotient >= self.bound if self.least else self.quotient <= self.bound


def job(name: str, threads: int) -> Callable[[], Any]:
    """Prepare a workload's only job."""
    workload = WORKLOADS[name]
    (prepare,) = JOBS[name].values()
    made: Job = prepare(workload, workload.tables(), threads)
    return made.run


def gathers() -> Callable[[], Any]:
    """Prepare the gathers of all columns of W1_payload alone, by Arrow, row numbers given."""
    workload = WORKLOADS["W1_payload"]
    tables = workload.tables()
    named = dict(zip(letters(workload.streams), tables, strict=True))
    found = query(workload).indices(named)
    rows = [pa.array(found[name]) for name in named]
    return lambda: [
        column.take(r) for t, r in zip(tables, rows, strict=True) for column in t.columns
    ]


def least(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Give the least milliseconds of each run; all take turns, after a round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            answer = run()
            times[name].append((time.perf_counter() - start) * 1e3)
            del answer
    return {name: min(taken[1:]) for name, taken in times.items()}


def keys_and_threads(rounds: int) -> list[Line]:
    """Compare text keys with integers, and two threads with one."""
    runs = {f"{name} {n}": job(name, n) for name in ("W1", "W1_text", "W1_sparse") for n in (1, 2)}
    ms = least(runs, rounds)
    lines = []
    for n in (1, 2):
        text, plain = ms[f"W1_text {n}"], ms[f"W1 {n}"]
        about = f"W1, text keys over int64 keys, threads={n}"
        lines.append(Line(about, text / plain, 2.5, False, f"{text:.1f} / {plain:.1f} ms"))
    for name in ("W1", "W1_text", "W1_sparse"):
        one, two = ms[f"{name} 1"], ms[f"{name} 2"]
        about = f"{name}, one thread over two"
        lines.append(Line(about, one / two, 1.7, True, f"{one:.1f} / {two:.1f} ms"))
    return lines


def payload(rounds: int) -> list[Line]:
    """Compare a join that gives all columns with the gathers of those columns alone."""
    runs = {"gathers": gathers(), "one": job("W1_payload", 1), "two": job("W1_payload", 2)}
    ms = least(runs, rounds)
    about = "W1 with 7 columns a side, over the gathers alone on one thread"
    lines = [
        Line(f"{about}: {n}", ms[n] / ms["gathers"], 1.3, False,
             f"{ms[n]:.1f} / {ms['gathers']:.1f} ms")
        for n in ("one", "two")
    ]  # fmt: skip
    speed = ms["one"] / ms["two"]
    figures = f"{ms['one']:.1f} / {ms['two']:.1f} ms"
    return [*lines, Line("the same, one thread over two", speed, 1.7, True, figures)]


def memory_of(name: str, threads: int) -> dict[str, int]:
    """Measure a workload's first run in this process."""
    workload = WORKLOADS[name]
    tables = workload.tables()
    for table in tables:
        for column in table.columns:
            pc.count(column)
    (prepare,) = JOBS[name].values()
    made = prepare(workload, tables, threads)
    answer, cost = measured(made.run)
    output = answer.nbytes if isinstance(answer, pa.Table) else sum(
        rows.nbytes for rows in answer.values()
    )  # fmt: skip
    return {
        "input": sum(table.nbytes for table in tables), "output": output, "peak": cost.peak or 0,
    }  # fmt: skip


def memory() -> list[Line]:
    """Hold the memory of runs in processes of their own against input and output, without state."""
    lines = []
    for name in MEMORY:
        for threads in (1, 2):
            command = [sys.executable, "-m", "benchmarks.bounds", "--memory", name, str(threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            held = found["input"] + found["peak"]
            about = f"{name}, greatest memory over input + output, threads={threads}"
            figures = f"({found['input'] / 1e6:.0f} + {found['peak'] / 1e6:.0f})" + (
                f" / ({found['input'] / 1e6:.0f} + {found['output'] / 1e6:.0f}) MB"
            )
            quotient = held / (found["input"] + found["output"])
            lines.append(Line(about, quotient, MEMORY_BOUND, False, figures))
    return lines


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    text = [
        headline(before),
        "",
        "| what | quotient | bound | of |",
        "| --- | ---: | ---: | --- |",
    ]
    for line in lines:
        sign = ">=" if line.least else "<="
        mark = "" if line.holds else " (missed)"
        text.append(
            f"| {line.about} | {line.quotient:.2f}{mark} | {sign} {line.bound} | {line.figures} |"
        )
    return "\n".join([*text, ""])


def main() -> int:
    """Measure, write and say how many bounds were missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument("--memory", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        print(json.dumps(memory_of(chosen.memory[0], int(chosen.memory[1]))))
        return 0
    if chosen.out is None:
        parser.error("--out is needed: the folder for the results")
    before = machine()
    lines = [*keys_and_threads(chosen.rounds), *payload(chosen.rounds), *memory()]
    before["load_after"] = load_now()
    figures = [{**asdict(x), "holds": x.holds} for x in lines]
    keep(chosen.out, "bounds", before, markdown(before, lines), figures)
    return sum(not line.holds for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
