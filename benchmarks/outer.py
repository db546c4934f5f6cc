"""Outer, semi and anti joins beside the inner join, and beside DuckDB's, in one process run.

    python -m benchmarks.outer                      # W1 W1s W2 W3 W4 W7, one thread
    python -m benchmarks.outer --workloads W1 --repeat 5 --save

Row numbers out, or with ``--tables`` all columns; seconds are of the processor, the least of some
runs in turn.  DuckDB's SEMI and ANTI joins have time buckets made by hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measure import headline, keep, load_now, machine, measured
from benchmarks.peers import letters
from benchmarks.peers.duckdb_peer import PAIR_A_B, bucketed, prepare, twice
from benchmarks.queries import query
from benchmarks.workloads import WORKLOADS, Workload

FOLDER = Path(__file__).parent / "results" / "outer"
NAMES = ("W1", "W1s", "W2", "W3", "W4", "W7")
HOWS = ("left", "semi", "anti")
DUCKDB = (
    f"SELECT a.i AS a FROM {bucketed('a')} a {{how}} JOIN {twice('b')} b"
    f" ON a.k = b.k AND a.bucket = b.bucket AND {PAIR_A_B}"
)


def asked(workload: Workload, how: str) -> Any:
    """The workload's query, with another ``how``."""
    from windjoin.hows import sides

    plain = query(workload)
    return replace(plain, sides=sides(plain.names, how, (), (), ()))  # type: ignore[arg-type]


def ours(workload: Workload, how: str, threads: int, tables: bool) -> Callable[[], int]:
    """Give how many rows come out: as ``tables``, or as row numbers."""
    names = letters(workload.streams)
    named = {n: t.drop_columns(["i"]) for n, t in zip(names, workload.tables(), strict=True)}
    built = asked(workload, how)
    if tables:
        return lambda: len(built.run(named, threads=threads))
    return lambda: len(built.indices(named, threads=threads)["a"])


def theirs(workload: Workload, how: str, threads: int) -> Callable[[], int]:
    """The same by DuckDB."""
    job = prepare(DUCKDB.format(how=how.upper()), workload, workload.tables(), threads)

    def run() -> int:
        job.run()
        return -1

    return run


def figures(name: str, repeat: int, threads: int, tables: bool) -> dict[str, Any]:
    """Seconds of each how, and rows that come out."""
    workload = WORKLOADS[name]
    found: dict[str, Any] = {"workload": name}
    runs = {how: ours(workload, how, threads, tables) for how in ("inner", *HOWS)}
    if name in ("W1", "W1s"):
        runs |= {f"duckdb {how}": theirs(workload, how, threads) for how in ("semi", "anti")}
    for _ in range(repeat + 1):  # in turn: whatever else runs here slows all of them
        for how, run in runs.items():
            run()  # in the memory of its own last results, as one query after the other has it
            rows, cost = measured(run)
            known = found.setdefault(how, {"seconds": float("inf"), "rows": rows})
            known["seconds"] = min(known["seconds"], cost.cpu)
    return found


def table(about: dict[str, Any], every: list[dict[str, Any]]) -> str:
    """The figures for people: seconds, and ratios to the inner join of the same run."""
    lines = ["# Outer, semi and anti joins", "", headline(about), ""]
    lines += ["| workload | inner | left | semi | anti | DuckDB semi / ours | DuckDB anti / ours |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for one in every:
        inner = one["inner"]["seconds"]
        cells = [f"{1e3 * inner:.1f} ms, {one['inner']['rows']:,} rows"]
        cells += [f"{one[how]['seconds'] / inner:.2f}x, {one[how]['rows']:,}" for how in HOWS]
        for how in ("semi", "anti"):
            peer = one.get(f"duckdb {how}")
            cells.append("" if peer is None else f"{peer['seconds'] / one[how]['seconds']:.1f}x")
        lines.append(f"| {one['workload']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run and show."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--workloads", nargs="+", default=list(NAMES))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tables", action="store_true", help="columns out, not row numbers")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    about = machine()
    every = [
        figures(name, options.repeat, options.threads, options.tables) for name in options.workloads
    ]
    about["load_after"] = load_now()
    shown = table(about, every)
    if options.save:
        keep(FOLDER, "outer-tables" if options.tables else "outer", about, shown, every)
    else:
        print(shown)


if __name__ == "__main__":
    main()
