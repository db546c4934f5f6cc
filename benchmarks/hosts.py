"""What hosts of one process gain: the same join on one host and on several.

    python -m benchmarks.hosts --out benchmarks/results/hosts

The queries are bound by what is done per pair of rows, not by rows that go in and results that come
out: there hosts are threads that hardly meet.  Answers are compared with those of a run without
hosts.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

from benchmarks.checksum import checksum
from benchmarks.measure import Cost, machine, measured
from benchmarks.queries import query
from benchmarks.workloads import WORKLOADS

STRATEGIES = ("auto", "atr", "ctr", "psp")
ROWS = 40_000  # of each stream of the function's query
PUSHES = 12  # of a session, per stream

Tables = dict[str, pa.Table]
Answer = tuple[int, int]


def function() -> tuple[Any, Tables]:
    """Any function of two numbers: nothing but trying helps."""
    a, b = (wj.stream(name, time="ts", window=1_500) for name in "ab")
    near = wj.udf(lambda x, y: math.sin(x) * math.cos(y) > 0.9999, a["x"], b["x"])
    chance = np.random.default_rng(3)
    tables = {
        name: pa.table(
            {"ts": np.sort(chance.integers(0, ROWS, ROWS)), "x": chance.random(ROWS) * 10}
        )
        for name in "ab"
    }
    return wj.join(a, b, on=near), tables


def vectors() -> tuple[Any, Tables]:
    """Three-way similarity of vectors: workload W4."""
    workload = WORKLOADS["W4"]
    return query(workload), dict(zip("abc", workload.tables(), strict=True))


QUERIES: dict[str, Callable[[], tuple[Any, Tables]]] = {
    "function": function,
    "vectors": vectors,
}


def batch(query: Any, tables: Tables, options: dict[str, Any]) -> tuple[Answer, Cost]:
    """Whole tables."""
    found, cost = measured(lambda: query.indices(tables, **options))
    return (len(found["a"]), checksum(list(found.values()))), cost


def session(query: Any, tables: Tables, options: dict[str, Any]) -> tuple[Answer, Cost]:
    """The same rows, pushed stream by stream in pieces; results counted."""

    def push() -> int:
        schemas = {name: rows.schema for name, rows in tables.items()}
        with query.open(schemas, **options) as live:
            results = 0
            for piece in range(PUSHES):
                for name, rows in tables.items():
                    results += live.push(name, _piece(rows, piece)).num_rows
            return results + int(live.close().num_rows)

    found, cost = measured(push)
    return (found, 0), cost


def _piece(rows: pa.Table, piece: int) -> pa.Table:
    start, stop = (len(rows) * at // PUSHES for at in (piece, piece + 1))
    return rows.slice(start, stop - start)


def case(name: str, hosts: list[int], repeat: int) -> dict[str, Any]:
    """Least times of one query in every way, taken in turn."""
    query, tables = QUERIES[name]()
    ways: dict[str, tuple[Any, dict[str, Any]]] = {"batch, 1 thread": (batch, {"threads": 1})}
    for strategy in STRATEGIES:
        for count in hosts:
            ways[f"batch, {strategy}, {count}"] = batch, {"hosts": count, "strategy": strategy}
    for count in hosts:
        ways[f"session, auto, {count}"] = session, {"hosts": count}
    answers: dict[str, Answer] = {}
    least: dict[str, Cost] = {}
    for _ in range(repeat):
        for way, (run, options) in ways.items():
            answer, cost = run(query, tables, options)
            answers[way] = answer
            if way not in least or cost.wall < least[way].wall:
                least[way] = cost
    right = answers["batch, 1 thread"]
    for way, (run, _) in ways.items():
        if answers[way] != (right if run is batch else (right[0], 0)):
            raise SystemExit(f"{name}: {way} gives {answers[way]}, a run without hosts {right}")
    return {
        "results": right[0],
        "wall": {way: round(cost.wall, 4) for way, cost in least.items()},
        "cpu": {way: round(cost.cpu, 4) for way, cost in least.items()},
    }


def table(cases: dict[str, Any], hosts: list[int]) -> str:
    """Markdown: seconds on one host, and how many times faster several are."""
    others = [count for count in hosts if count != 1]
    heads = ["query", "how", "1 host, s", *(f"{n} hosts" for n in others), "1 thread, no hosts, s"]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for name, found in cases.items():
        wall = found["wall"]
        for way in ["session, auto", *(f"batch, {strategy}" for strategy in STRATEGIES)][::-1]:
            gains = [f"{wall[f'{way}, 1'] / wall[f'{way}, {n}']:.2f} x" for n in others]
            cells = [name, way, f"{wall[f'{way}, 1']:.2f}", *gains]
            lines.append(f"| {' | '.join(cells)} | {wall['batch, 1 thread']:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run, check the answers, write ``results.json`` and ``results.md``."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="QUERY", help=f"of {', '.join(QUERIES)}")
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    hosts = [1, *given.hosts]
    cases = {name: case(name, hosts, given.repeat) for name in given.names or list(QUERIES)}
    print(table(cases, hosts))
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        record = {"machine": machine(), "cases": cases}
        (given.out / "results.json").write_text(json.dumps(record, indent=1) + "\n")
        (given.out / "results.md").write_text(table(cases, hosts))


if __name__ == "__main__":
    main()
