"""A long continuous join whose resident memory must not grow.

    python -m benchmarks.soak --rows 100_000_000

Pushes rows of two streams in turn and prints the resident memory at each tenth.  It fails when
the memory at the end is above that of the first tenth by more than 2 % and 8 MB.
"""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import dataclass
from typing import Any

import psutil
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.pushes import endless
from benchmarks.queries import join

TENTHS = 10
SHARE, SLACK = 1.02, 8_000_000


@dataclass(frozen=True, slots=True)
class Reading:
    """State of the run at one tenth."""

    rows: int
    results: int
    resident: int  # bytes
    seconds: float


def flat(readings: list[Reading]) -> bool:
    """Say whether the memory at the end is that of the first tenth."""
    return readings[-1].resident <= readings[0].resident * SHARE + SLACK


def soak(rows: int, batch: int, keys: int, window: int, progress: Progress) -> list[Reading]:
    """Push ``rows`` rows and read the memory at each tenth."""
    process, readings = psutil.Process(), list[Reading]()
    task = progress.add_task("pushing", total=rows)
    pushed = results = 0
    start = time.perf_counter()
    with join("equality", 2, window).open(rows_only=True) as session:
        for name, columns in endless(batch, keys):
            results += len(session.push(name, columns)["a"])
            pushed += batch
            if pushed * TENTHS >= rows * (len(readings) + 1):
                gc.collect()
                resident, seconds = process.memory_info().rss, time.perf_counter() - start
                readings.append(Reading(pushed, results, resident, seconds))
                show(progress.console, readings[-1], session)
                progress.update(task, completed=pushed)
            if pushed >= rows:
                break
    return readings


def show(console: Console, reading: Reading, session: Any) -> None:
    """Print one tenth."""
    console.print(
        f"{reading.rows:>13,} rows  {reading.results:>13,} results"
        f"  resident {reading.resident / 1e6:8.1f} MB"
        f"  state {session.state_bytes / 1e6:8.1f} MB"
        f"  {reading.rows / reading.seconds / 1e6:6.2f} M rows/s",
        soft_wrap=True,
        highlight=False,
    )


def main() -> int:
    """Run a soak."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=main.__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--batch", type=int, default=16_384)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--window", type=int, default=10_000_000, help="microseconds")
    chosen = parser.parse_args()
    if chosen.rows < TENTHS * chosen.batch:
        parser.error(f"--rows must be at least {TENTHS} batches of {chosen.batch}")
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        readings = soak(chosen.rows, chosen.batch, chosen.keys, chosen.window, progress)
        first, last = readings[0].resident / 1e6, readings[-1].resident / 1e6
        verdict = "flat" if flat(readings) else "GROWS"
        progress.console.print(f"{verdict}: {first:.1f} MB after a tenth, {last:.1f} MB at the end")
    return int(not flat(readings))


if __name__ == "__main__":
    raise SystemExit(main())
