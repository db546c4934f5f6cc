"""What an ordinary push costs: a table in, a table out, with all columns of every stream.

    python -m benchmarks.push_tables --out benchmarks/results/push_tables

Rows are those of W1: a timestamp, an id, an integer key, a double and a small integer; every other
shape changes one thing about them.  Streams take turns, so many rows at a time, with a lateness of
one second.
The *bound* is what must happen around a join in Python: to export the columns of a batch through
Arrow's C interface, and to import a record batch of the result's schema from it.  It is measured in
the same process and rounds.  The least thread time of the rounds counts.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

from benchmarks.measure import headline, keep, load_now, machine

SIZES = (1, 64, 1024, 16_384)
MOST_PUSHES, MOST_ROWS = 20_000, 1_000_000  # of one stream
SPACING = 100  # microseconds between rows of a stream
KEYS = 10_000
ARROW_ARRAY = 80  # bytes of the C struct
Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Shape:
    """What rows are like, and how they are joined."""

    change: Callable[[pa.Table, np.random.Generator], pa.Table] = lambda rows, random: rows
    keys: tuple[str, ...] = ("k",)
    streams: int = 2
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One shape at one size."""

    shape: str
    size: int
    push_us: float
    bound_us: float
    million_rows_s: float
    results: int


def plain(rows: int, random: np.random.Generator) -> pa.Table:
    """Rows of W1."""
    return pa.table(
        {
            "ts": pa.array(np.arange(rows) * SPACING, pa.timestamp("us")),
            "id": np.arange(rows),
            "k": random.integers(0, KEYS, rows),
            "x": random.random(rows),
            "n": random.integers(0, 100, rows).astype(np.int32),
        }
    )


def replaced(name: str, make: Callable[[Any, np.random.Generator], Any]) -> Any:
    """Another column in place of one."""

    def change(rows: pa.Table, random: np.random.Generator) -> pa.Table:
        at = rows.schema.get_field_index(name)
        return rows.set_column(at, name, make(rows.column(name), random))

    return change


def texts(column: Any, random: np.random.Generator) -> Any:
    return pa.array([f"key {value}" for value in column.to_pylist()])


def some_null(column: Any, random: np.random.Generator) -> Any:
    return pa.array(column.to_numpy(), column.type, mask=random.random(len(column)) < 0.05)


def decimals(column: Any, random: np.random.Generator) -> Any:
    return pa.array([Decimal(value) / 100 for value in column.to_pylist()], pa.decimal128(12, 2))


def moved(most: int, share: float) -> Callable[[Any, np.random.Generator], Any]:
    """Times earlier by up to so many microseconds, for a share of the rows."""

    def change(column: Any, random: np.random.Generator) -> Any:
        back = random.integers(0, most, len(column)) * (random.random(len(column)) < share)
        return pa.array(column.cast(pa.int64()).to_numpy() - back, column.type)

    return change


SHAPES = {
    "plain": Shape(),
    "text key": Shape(replaced("k", texts)),
    "composite key": Shape(
        replaced("n", lambda column, random: pa.array(random.integers(0, 2, len(column)))),
        keys=("k", "n"),
    ),
    "text payload": Shape(replaced("x", texts)),
    "nulls in keys": Shape(replaced("k", some_null)),
    "nulls in payload": Shape(replaced("x", some_null)),
    "decimal key": Shape(replaced("k", decimals)),
    "out of order": Shape(replaced("ts", moved(10_000, 1.0))),
    "1 % late": Shape(replaced("ts", moved(3_000_000, 0.015))),
    "filter": Shape(filtered=True),
    "three streams": Shape(streams=3),
}


def tables(shape: Shape, rows: int) -> Tables:
    """All rows of every stream."""
    made = {}
    for number, name in enumerate("abc"[: shape.streams]):
        random = np.random.default_rng(number)
        made[name] = shape.change(plain(rows, random), random).combine_chunks()
    return made


def query(shape: Shape) -> wj.Query:
    """The join of that shape."""
    streams = []
    for name in "abc"[: shape.streams]:
        kept = (lambda rows: rows["x"] < 0.9) if shape.filtered else None
        streams.append(wj.stream(name, time="ts", window="1s", where=kept))
    on = [one[key] == other[key] for one, other in pairwise(streams) for key in shape.keys]
    return wj.join(*streams, on=on)


def pushes(come: Tables, size: int, rows: int) -> Iterator[tuple[str, pa.Table]]:
    """Streams in turn, so many rows at a time."""
    for start in range(0, rows, size):
        for name, table in come.items():
            yield name, table.slice(start, size)


def bound(rows: pa.Table, result: pa.Schema, tries: int = 2000) -> float:
    """Microseconds to export rows and to import a batch of a result's schema, through C."""
    batch = rows.to_batches()[0]
    empty = pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in result], schema=result)
    least = float("inf")
    for _ in range(5):
        # what a join would have filled is made outside the time that counts
        made = [ctypes.create_string_buffer(ARROW_ARRAY) for _ in range(tries)]
        for array in made:
            empty._export_to_c(ctypes.addressof(array))
        places = [ctypes.addressof(array) for array in made]
        begun = time.thread_time_ns()
        for place in places:
            batch.__arrow_c_array__()
            pa.RecordBatch._import_from_c(place, result)
        least = min(least, (time.thread_time_ns() - begun) / tries / 1000)
    return least


def measure(name: str, size: int, rounds: int) -> Line:
    """One shape at one size, the least of some rounds."""
    shape = SHAPES[name]
    rows = min(MOST_ROWS, MOST_PUSHES * size)
    come = tables(shape, rows)
    schemas = {stream: table.schema for stream, table in come.items()}
    joined, least, of_bound, results = query(shape), float("inf"), float("inf"), 0
    for _ in range(rounds):
        ready = list(pushes(come, size, rows))
        with joined.open(schemas, lateness="1s") as session:
            push, results = session.push, 0
            begun = time.thread_time_ns()
            for stream, some in ready:
                results += push(stream, some).num_rows
            least = min(least, time.thread_time_ns() - begun)
        of_bound = min(of_bound, bound(come["a"].slice(0, 1), joined.bind(schemas).schema))
    each = least / len(ready) / 1000
    done = sum(table.num_rows for table in come.values())
    return Line(name, size, each, of_bound, done / least * 1000, results)


def markdown(before: dict[str, Any], lines: list[Line]) -> str:
    """Write the table."""
    of_plain = {line.size: line.push_us for line in lines if line.shape == "plain"}
    text = [
        headline(before),
        "",
        "| shape | rows a push | us a push | over the bound | over plain | million rows/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for x in lines:
        over = f"{x.push_us / of_plain[x.size]:.2f}" if x.size in of_plain else ""
        text.append(
            f"| {x.shape} | {x.size} | {x.push_us:,.1f} | {x.push_us / x.bound_us:.2f}"
            f" | {over} | {x.million_rows_s:,.2f} |"
        )
    return "\n".join([*text, ""])


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.push_tables", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SHAPE", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    chosen = parser.parse_args()
    before = machine()
    lines = [
        measure(name, size, chosen.rounds)
        for name in chosen.names or SHAPES
        for size in chosen.sizes
    ]
    before["load_after"] = load_now()
    figures = [asdict(line) for line in lines]
    keep(chosen.out, "push_tables", before, markdown(before, lines), figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
