"""How far is windjoin from bare loops in C, with nothing around them, on this machine?

    python -m benchmarks.bare --out benchmarks/results/bare

A bare loop reads arrays, knows its query, its types and its sizes, and writes row numbers into
memory that is ready.  windjoin and the loop take turns in one process, on one thread; the least
thread time of each counts.  The bounds are what the project wants to keep on any machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.bare import pushes, whole
from benchmarks.continuous import run as push_all
from benchmarks.measure import headline, keep, load_now, machine
from benchmarks.micro import test_bench_function as function
from benchmarks.peers import letters
from benchmarks.queries import query
from benchmarks.workloads import WORKLOADS

PUSHES = {
    ("W1", 1): 2.3,  # the loop, and a function of Python that takes and gives as much
    ("W1", 64): 2.2, ("W1", 1024): 1.55, ("W1", 16_384): 1.4,
    ("W2", 64): 3.3, ("W2", 1024): 2.0, ("W2", 16_384): 1.3,  # twice what W1 may take
}  # fmt: skip
AT_ONCE = 64  # rows of a stream in turn, where a bare loop joins whole tables
CALLS = 64_000


@dataclass(frozen=True, slots=True)
class Line:
    """One workload against its bare loop."""

    what: str
    ours: float
    bare: float
    unit: str
    bound: float

    @property
    def quotient(self) -> float:
        """How many times as long."""
        return self.ours / self.bare


def least(rounds: int, ours: Callable[[], float], bare: Callable[[], float]) -> tuple[float, float]:
    """The least of each, in turns."""
    ours()
    figures = [(ours(), bare()) for _ in range(rounds)]
    return min(a for a, _ in figures), min(b for _, b in figures)


def batch(name: str) -> Callable[[], float]:
    """Milliseconds of a workload's tables on one thread, row numbers out."""
    workload = WORKLOADS[name]
    tables = dict(zip(letters(workload.streams), workload.tables(), strict=True))
    asked = query(workload)

    def run() -> float:
        begun = time.thread_time_ns()
        found = asked.indices(tables, threads=1)
        taken = time.thread_time_ns() - begun
        if len(found["a"]) != workload.results:
            raise SystemExit(f"{name}: {len(found['a'])} results, not {workload.results}")
        return taken / 1e6

    return run


def ring(name: str) -> float:
    """Milliseconds of a workload of two streams by pushes of a few rows in a bare loop."""
    rows = sum(table.num_rows for table in WORKLOADS[name].tables())
    return pushes.measure(name, AT_ONCE, rounds=1).row_ns * rows / 1e6


def tables(rounds: int) -> list[Line]:
    """Whole tables."""
    jobs: dict[str, tuple[str, Callable[[], float], float]] = {
        "W1": ("W1", lambda: ring("W1"), 1.5),
        "W1 with keys all over int64": ("W1_sparse", lambda: ring("W1"), 1.5),
        "W2": ("W2", lambda: ring("W2"), 2.0),
        "W5": ("W5", lambda: whole.chains("W5") / 1e6, 1.9),
    }
    return [
        Line(f"{what}, whole tables", *least(rounds, batch(name), bare), "ms", bound)
        for what, (name, bare, bound) in jobs.items()
    ]


def functions(rounds: int) -> list[Line]:
    """A user's function over windows of growing size."""
    lines = []
    streams = list(function.streams().values())
    for window in (256, 1024, 4096):
        join, pairs = function.windjoin(window // 2), function.ROWS * window

        def ours(join: Callable[[], int] = join, pairs: int = pairs) -> float:
            begun = time.thread_time_ns()
            join()
            return (time.thread_time_ns() - begun) / pairs

        def bare(join: Callable[[], int] = join, window: int = window, pairs: int = pairs) -> float:
            taken, results = whole.masks(streams, window // 2, function.REACH)
            if results != join():
                raise SystemExit(f"a window of {window}: {results} results by bare masks")
            return taken / pairs

        what = f"a function of two columns, {window} rows in the window"
        lines.append(Line(what, *least(rounds, ours, bare), "ns per pair", 2.4))
    return lines


def continuous(rounds: int) -> list[Line]:
    """Rows pushed as they come."""
    lines = []
    for (name, size), bound in PUSHES.items():
        data = [table.combine_chunks() for table in WORKLOADS[name].tables()]
        rows = min(200_000 * size, data[0].num_rows)

        def ours(
            name: str = name, size: int = size, data: list[Any] = data, rows: int = rows
        ) -> float:
            taken, _, _ = push_all(WORKLOADS[name], data, size, rows)
            return sum(taken) / rows / len(data)

        def bare(name: str = name, size: int = size) -> float:
            calls = pushes.call(name, CALLS) if size == 1 else 0
            return pushes.measure(name, size, rounds=1).row_ns + calls

        lines.append(
            Line(
                f"{name}, pushes of {size} row{'s' * (size > 1)}",
                *least(rounds, ours, bare),
                "ns a row",
                bound,
            )
        )
    return lines


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    text = [
        headline(before),
        "",
        "| what | windjoin | bare loop | | quotient | bound |",
        "| --- | ---: | ---: | --- | ---: | ---: |",
    ]
    text += [
        f"| {x.what} | {x.ours:.3g} | {x.bare:.3g} | {x.unit} | {x.quotient:.2f}"
        f"{'' if x.quotient <= x.bound else ' (missed)'} | <= {x.bound} |"
        for x in lines
    ]
    return "\n".join([*text, ""])


PARTS = {"tables": tables, "function": functions, "pushes": continuous}


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = [line for part in chosen.parts or PARTS for line in PARTS[part](chosen.rounds)]
    before["load_after"] = load_now()
    keep(chosen.out, "bare", before, markdown(before, lines), [asdict(x) for x in lines])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
