"""What pushed rows cost beside the same rows in a batch, and in sessions of other kinds.

    python -m benchmarks.push_kinds --out benchmarks/results/push_kinds

Tables in, tables out, all columns.  Sets, vectors, images, weighted sets and ``nearest=`` are
compared with `Query.run` on one thread, per row; ``memory=`` that is never reached, ``how=`` and
``hosts=`` with a plain session on the same rows.  Both sides take turns in one process; the least
thread time of the rounds counts, of hosts the least wall time, as others work for them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import windjoin as wj

from benchmarks import generators as g
from benchmarks.hosts import function
from benchmarks.measure import headline, keep, load_now, machine
from benchmarks.push_tables import SHAPES, Tables, pushes
from benchmarks.push_tables import query as plain_query
from benchmarks.push_tables import tables as plain_tables

Made = tuple[Any, Tables]


@dataclass(frozen=True, slots=True)
class Kind:
    """A join, what it is compared with, and the sizes of pushes; beside None: a batch."""

    make: Callable[[], Made]
    beside: Callable[[], Made] | None = None
    sizes: tuple[int, ...] = (64, 1024)
    options: dict[str, Any] = field(default_factory=dict)
    asked: float = 2.5  # times the other
    wall: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One kind at one size."""

    kind: str
    size: int
    row_us: float
    beside_us: float
    asked: float
    results: int


def pair(condition: Callable[[Any, Any], Any], **more: Any) -> Any:
    """Two streams with a window of 20 seconds."""
    a, b = (wj.stream(name, time="ts", window=20 * g.SECOND) for name in "ab")
    return wj.join(a, b, on=condition(a, b), **more)


def two(rows: int, column: Callable[[Any], Any], seconds: int = 100) -> Tables:
    """Rows of two streams with times and one column ``v``."""
    random = g.generator("push_kinds")
    return {
        name: g.table(ts=g.times(random, rows, seconds), v=column(random)).combine_chunks()
        for name in "ab"
    }


def sets(rows: int = 24_000) -> Made:
    def column(random: Any) -> Any:
        return g.item_sets(random, rows, domain=5_000, exponent=0.6, mean=8, deviation=2)

    return pair(lambda a, b: wj.overlap(a["v"], b["v"]) >= 4), two(rows, column, 300)


def weighted(rows: int = 4_000) -> Made:
    def column(random: Any) -> Any:
        items = g.item_sets(random, rows, domain=200, exponent=0.8, mean=10, deviation=2)
        weights = pa.array(random.random(len(items.values)))
        return pa.MapArray.from_arrays(items.offsets, items.values, weights)

    return pair(lambda a, b: wj.cosine(a["v"], b["v"]) >= 0.6), two(rows, column)


def vectors(rows: int = 8_000, **more: Any) -> Made:
    made = pair(lambda a, b: wj.l2(a["v"], b["v"]) <= 1.0, **more)
    return made, two(rows, lambda random: g.vectors(random.random((rows, 16))))


def images(rows: int = 1_500) -> Made:
    def column(random: Any) -> Any:
        return g.vectors(random.integers(0, 255, (rows, 3_000)).astype("u1"))

    return pair(lambda a, b: wj.mean_abs_diff(a["v"], b["v"]) <= 80), two(rows, column)


def plain(**more: Any) -> Made:
    rows = 120_000
    streams = [wj.stream(name, time="ts", window="1s") for name in "ab"]
    joined = plain_query(SHAPES["plain"])
    if more:
        joined = wj.join(*streams, on=streams[0]["k"] == streams[1]["k"], **more)
    return joined, plain_tables(SHAPES["plain"], rows)


SESSION = (1, 64, 1024, 16_384)
KINDS = {
    "sets": Kind(sets),
    "weighted sets": Kind(weighted),
    "vectors": Kind(vectors),
    "images": Kind(images),
    "nearest": Kind(lambda: vectors(nearest=2)),
    "memory= never reached": Kind(plain, plain, SESSION, {"memory": "4GB"}, 1.02),
    'how="left"': Kind(lambda: plain(how="left"), plain, SESSION, asked=2.0),
    'how="anti"': Kind(lambda: plain(how="anti"), plain, SESSION, asked=2.0),
    "hosts=2": Kind(plain, plain, (64,), {"hosts": 2}, 3.0, wall=True),
    "hosts=2, a function": Kind(function, function, (16_384,), {"hosts": 2}, 1.0, wall=True),
}


def pushed(made: Made, size: int, options: dict[str, Any], clock: Callable[[], int]) -> Any:
    """Nanoseconds per row, and how many results."""
    joined, come = made
    rows = min(max(table.num_rows for table in come.values()), 20_000 * size)
    ready = list(pushes({name: table.slice(0, rows) for name, table in come.items()}, size, rows))
    schemas = {name: table.schema for name, table in come.items()}
    lateness = {"lateness": "1s"} if "k" in come["a"].column_names else {}
    with joined.open(schemas, **lateness, **options) as session:
        begun, results = clock(), 0
        for name, some in ready:
            results += session.push(name, some).num_rows
        results += session.close().num_rows
        took = clock() - begun
    return took / sum(some.num_rows for _, some in ready), results


def batch(made: Made) -> Any:
    """The same of whole tables."""
    joined, come = made
    begun = time.thread_time_ns()
    results = joined.run(come, threads=1).num_rows
    took = time.thread_time_ns() - begun
    return took / sum(table.num_rows for table in come.values()), results


def measure(name: str, rounds: int) -> Iterator[Line]:
    """All sizes of one kind."""
    kind = KINDS[name]
    clock = time.perf_counter_ns if kind.wall else time.thread_time_ns
    made = kind.make()
    beside = None if kind.beside is None else kind.beside()
    for size in kind.sizes:
        ours, theirs, results = [], [], 0
        for _ in range(rounds):
            took, results = pushed(made, size, kind.options, clock)
            ours.append(took)
            other = batch(made) if beside is None else pushed(beside, size, {}, clock)
            theirs.append(other[0])
            assert not kind.options or other[1] == results, "the same rows have other results"
        yield Line(name, size, min(ours) / 1000, min(theirs) / 1000, kind.asked, results)


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    text = [
        headline(before),
        "",
        "| kind | rows a push | us a row | beside it | ratio | asked | results |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    text += [
        f"| {x.kind} | {x.size} | {x.row_us:.3f} | {x.beside_us:.3f} | {x.row_us / x.beside_us:.2f}"
        f" | {x.asked:.2f} | {x.results:,} |"
        for x in lines
    ]
    return "\n".join([*text, ""])


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.push_kinds", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = [line for name in chosen.names or KINDS for line in measure(name, chosen.rounds)]
    before["load_after"] = load_now()
    figures = [asdict(line) for line in lines]
    keep(chosen.out, "push_kinds", before, markdown(before, lines), figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
