"""What the vector paths are worth: named workloads with each instruction set this processor has.

    python -m benchmarks.isa --workloads W1,W2 --repeat 5

Every figure is the least CPU time of the runs, in a process of its own, on one thread; a wrong
answer ends the command.  Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from windjoin.pyx.base import cpu

from benchmarks.checksum import checksum
from benchmarks.ours import JOBS
from benchmarks.workloads import WORKLOADS

DEFAULT = "W1,W1_text,W1s,W2,W3,W4,W5,W6,W7,intervals,intervals_window"


def seconds(name: str, repeat: int) -> float:
    """Give the least CPU time of a workload in this process, after a run to warm up."""
    workload = WORKLOADS[name]
    (prepare,) = JOBS[name].values()
    job = prepare(workload, workload.tables(), 1)
    members = job.members(job.run())
    found = len(members[0]), checksum(members)
    if found != (workload.results, workload.checksum):
        raise RuntimeError(f"{name}: results and checksum {found}, not those recorded")
    del members
    least = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        job.run()
        least = min(least, time.process_time() - start)
    return least


def in_a_process(name: str, isa: str, repeat: int) -> float:
    """The same with the instruction set that the environment names."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.isa", "--one", name, "--repeat", str(repeat)],
        env={**os.environ, "WINDJOIN_ISA": isa},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(run.stdout)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.isa", description=main.__doc__)
    parser.add_argument("--workloads", default=DEFAULT)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(seconds(chosen.one, chosen.repeat))
        return 0
    sets = cpu.supported()
    print(f"| workload | {' | '.join(f'{isa}, ms' for isa in sets)} | {sets[-1]} = 1 |")
    print(f"| --- |{' ---: |' * (len(sets) + 1)}")
    for name in chosen.workloads.split(","):
        times = [in_a_process(name, isa, chosen.repeat) for isa in sets]
        cells = " | ".join(f"{t * 1e3:.1f}" for t in times)
        ratios = " / ".join(f"{t / times[-1]:.2f}" for t in times)
        print(f"| `{name}` | {cells} | {ratios} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
