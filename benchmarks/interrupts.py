"""How soon long work ends after Ctrl-C, in seconds of processor time: no load of others counts.

    python -m benchmarks.interrupts --out benchmarks/results/interrupts

Another process sends SIGINT at random moments of a run or a push, and notes the processor time that
this one has used by then; what it uses more until the call has ended is the reaction.  Threads that
share the work all count, so two that end within half a second may take one together.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import windjoin as wj

from benchmarks.measure import headline, keep, load_now, machine

ROWS = 3_000_000
BOUND = 1.0  # seconds
Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Line:
    """Reactions of one kind of work."""

    work: str
    whole: float
    median: float
    worst: float
    ended: int  # of the interrupts: those that came before the work was done
    threads_left: int


def rows(number: int, **changed: Any) -> pa.Table:
    """Rows a millisecond apart, with what joins ask for."""
    made = np.random.default_rng(number)
    columns = {
        "t": np.arange(ROWS),
        "k": made.integers(0, 2**60, ROWS) % 1_000_003,
        "l": made.integers(0, 2**40, ROWS),
        "x": made.random(ROWS),
    }
    return pa.table(columns | changed)


def tables(**changed: Callable[[int], Any]) -> dict[str, pa.Table]:
    """Both streams."""
    return {
        name: rows(number, **{column: make(number) for column, make in changed.items()})
        for number, name in enumerate("ab")
    }


def texts(number: int) -> Any:
    """As many different texts as rows, longer than what is compared at once."""
    numbers = pa.array(np.random.default_rng(number).integers(0, 2**60, ROWS)).cast(pa.string())
    return pc.binary_join_element_wise("some text before it", numbers, " ")


def query(on: Callable[[Any, Any], Any], window: int, **options: Any) -> wj.Query:
    """A join of both streams."""
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    return wj.join(a, b, on=on(a, b), **options)


def ran(joined: wj.Query, come: dict[str, pa.Table], **options: Any) -> Work:
    """A whole run."""
    return lambda: joined.run(come, **options)


def pushed(joined: wj.Query, come: dict[str, pa.Table]) -> Work:
    """Both tables in one push each."""

    def work() -> None:
        with joined.open({name: table.schema for name, table in come.items()}) as session:
            for name, table in come.items():
                session.push(name, table)

    return work


def key(a: Any, b: Any) -> Any:
    """One integer."""
    return a["k"] == b["k"]


def two_keys(a: Any, b: Any) -> Any:
    """A composite key."""
    return [a["k"] == b["k"], a["l"] == b["l"]]


def band(a: Any, b: Any) -> Any:
    """Numbers close together."""
    return abs(a["x"] - b["x"]) <= 1e-6


def works() -> dict[str, Callable[[], Work]]:
    """What is interrupted, by name; tables are made when they are needed."""
    return {
        "equality": lambda: ran(query(key, ROWS), tables(), threads=1),
        "equality, two threads": lambda: ran(query(key, ROWS), tables(), threads=2),
        "equality on two hosts": lambda: ran(query(key, ROWS), tables(), hosts=2),
        "composite key": lambda: ran(query(two_keys, ROWS), tables(), threads=1),
        "texts": lambda: ran(query(key, ROWS), tables(k=texts), threads=1),
        "texts, short windows": lambda: ran(query(key, 1000), tables(k=texts), threads=1),
        "band": lambda: ran(query(band, ROWS), tables(), threads=1),
        "band, two threads": lambda: ran(query(band, ROWS), tables(), threads=2),
        "many results": lambda: ran(
            query(key, 100), tables(k=lambda n: np.arange(ROWS) % 3), threads=1
        ),
        "push, equality": lambda: pushed(query(key, ROWS), tables()),
        "push, composite key": lambda: pushed(query(two_keys, ROWS), tables()),
        "push, texts": lambda: pushed(query(key, ROWS), tables(k=texts)),
    }


STRIKER = """
import os, signal, sys, time
target = int(sys.argv[1])
clock = (~target << 3) | 2  # of the processor time of a process, on Linux
for line in sys.stdin:
    while time.clock_gettime(clock) < float(line):
        time.sleep(0.001)
    begun = time.clock_gettime(clock)
    os.kill(target, signal.SIGINT)
    print(begun, flush=True)
"""


class Striker:
    """The process that sends the interrupts."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", STRIKER, str(os.getpid())]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )

    def interrupted(self, work: Work, after: float) -> float | None:
        """Seconds from an interrupt to the end of the work; None: it was done before."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        gc.collect()
        print(time.process_time() + after, file=self._process.stdin, flush=True)
        done = False
        try:
            work()
            done = True
            while True:  # until there has been so much of processor time
                pass
        except KeyboardInterrupt:
            ended = time.process_time()
        struck = float(self._process.stdout.readline())
        return None if done else ended - struck


def measure(name: str, interrupts: int) -> Line:
    """Interrupt one kind of work at random moments."""
    work = works()[name]()
    striker = Striker()
    begun = time.process_time()
    work()
    whole = time.process_time() - begun
    chance, found, left = random.Random(name), [], 0
    for _ in range(interrupts):
        seconds = striker.interrupted(work, chance.uniform(0.01, 0.98) * whole)
        left += sum(one.name.startswith("windjoin") for one in threading.enumerate())
        if seconds is not None:
            found.append(seconds)
    return Line(name, whole, median(found), max(found), len(found), left)


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    text = [
        headline(before),
        "",
        f"{sum(x.worst <= BOUND for x in lines)} of {len(lines)} kinds of work have always ended"
        f" within {BOUND:g} second of processor time.",
        "",
        "| work | whole, s | interrupts | median, s | worst, s | threads left |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    text += [
        f"| {x.work} | {x.whole:.2f} | {x.ended} | {x.median:.3f} | {x.worst:.3f}"
        f" | {x.threads_left} |"
        for x in lines
    ]
    return "\n".join([*text, ""])


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interrupts", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="WORK", help=f"of {', '.join(works())}")
    parser.add_argument("--interrupts", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = [measure(name, chosen.interrupts) for name in chosen.names or works()]
    before["load_after"] = load_now()
    figures = [asdict(line) for line in lines]
    keep(chosen.out, "interrupts", before, markdown(before, lines), figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
