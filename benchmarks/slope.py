"""Cost against size for degenerate shapes: time must grow no faster than rows + results.

    python -m benchmarks.slope --out benchmarks/results/slope            # all shapes
    python -m benchmarks.slope --shapes keys_hot,key_one --out benchmarks/results/slope

Each shape runs at x1, x4 and x16, as whole tables and through a session.  The slope is that of
log(time) over log(rows + results): 1 is linear, 2 is quadratic.  Where it is above 1 because
caches were left on the way, x64 is looked at too: from x16 on it must be linear as well.  The
number of results is compared with the oracle's at every size.  Shapes that the folder has and
that are not asked for stay.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import track

from benchmarks.measure import best_of, load_now, machine
from benchmarks.oracle import oracle
from benchmarks.peers import letters
from benchmarks.queries import join
from benchmarks.shapes import BAND_WIDE_REACH, SHAPES, Shape

SCALES = (16, 4, 1)  # rows at full size over rows of the step: x1, x4, x16
PUSH_ROWS = 1024
STEEPEST = 1.3  # random reads cost more the larger the table; a quadratic corner gives 2
STRAIGHT = 1.1  # above it x64 is looked at
CACHED = 3  # points of the slope; one more where that is too steep


@dataclass(frozen=True, slots=True)
class Point:
    """One shape at one size."""

    rows: int  # of all streams
    results: int
    seconds: float

    @property
    def size(self) -> int:
        """Give what the cost is held against."""
        return self.rows + self.results


def expected(shape: Shape, tables: list[pa.Table], window: int) -> int:
    """Give the number of results by an independent algorithm."""
    if shape.name == "streams_sixteen":
        return len(tables[0])  # every key once in every stream, all within the window
    return oracle(shape.kind, tables, window, BAND_WIDE_REACH)[0]


def batch(shape: Shape, tables: list[pa.Table], window: int, repeat: int) -> tuple[int, float]:
    """Join whole tables; give the number of results and the least time."""
    names = letters(shape.streams)
    query = join(shape.kind, shape.streams, window, BAND_WIDE_REACH)
    named = dict(zip(names, (t.drop_columns(["i"]) for t in tables), strict=True))
    found, seconds = best_of(repeat, lambda: query.indices(named, threads=1))
    return len(found[names[0]]), seconds


def session(
    shape: Shape, tables: list[pa.Table], window: int, repeat: int, rows: int
) -> tuple[int, float]:
    """Push all rows, so many at a time, the streams in turn or in the order of their times."""
    names, query = letters(shape.streams), join(shape.kind, shape.streams, window, BAND_WIDE_REACH)
    pushes = single_rows(names, tables) if rows == 1 else in_turn(names, tables, rows)

    def run() -> int:
        with query.open(rows_only=True, schemas=schemas(names, tables)) as opened:
            total = sum(len(opened.push(name, part)["a"]) for name, part in pushes)
            return total + len(opened.close()["a"])

    return best_of(repeat, run)


def schemas(names: list[str], tables: list[pa.Table]) -> dict[str, pa.Schema]:
    """Give the schemas without the row numbers."""
    return {name: t.drop_columns(["i"]).schema for name, t in zip(names, tables, strict=True)}


def in_turn(names: list[str], tables: list[pa.Table], rows: int) -> list[tuple[str, Any]]:
    """Cut tables into pushes, a stretch of each stream after the other."""
    bare = [t.drop_columns(["i"]) for t in tables]
    return [
        (name, t.slice(first, rows))
        for first in range(0, len(tables[0]), rows)
        for name, t in zip(names, bare, strict=True)
    ]


def single_rows(names: list[str], tables: list[pa.Table]) -> list[tuple[str, Any]]:
    """Cut tables into rows, all streams in the order of time."""
    ts = np.concatenate([t["ts"].to_numpy() for t in tables])
    k = np.concatenate([t["k"].to_numpy() for t in tables])
    stream = np.repeat(names, [len(t) for t in tables])
    order = np.argsort(ts, kind="stable")
    return [
        (name, {"ts": ts[i : i + 1], "k": k[i : i + 1]})
        for name, i in zip(stream[order].tolist(), order.tolist(), strict=True)
    ]


def measure(shape: Shape, way: str, repeat: int) -> list[Point]:
    """Run a shape at its three sizes, and at a fourth if they do not lie on a line."""
    points = [point(shape, way, repeat, shape.rows // scale) for scale in SCALES]
    if slope(points) > STRAIGHT:
        points.append(point(shape, way, repeat, 4 * shape.rows))
    return points


def point(shape: Shape, way: str, repeat: int, count: int) -> Point:
    """Run a shape with ``count`` rows per stream."""
    tables, window = shape.generate(count)
    right = expected(shape, tables, window)
    if way == "batch":
        results, seconds = batch(shape, tables, window, repeat)
    else:
        rows = 1 if shape.pushed else PUSH_ROWS
        results, seconds = session(shape, tables, window, repeat, rows)
    if results != right:
        raise RuntimeError(f"{shape.name}, {way}: {results:,} results instead of {right:,}")
    return Point(sum(len(t) for t in tables), results, seconds)


def label(key: str) -> str:
    """Give the words for a shape and a way.

    >>> label("key_one session")
    'one key for all rows, session'
    """
    name, way = key.split()
    return f"{SHAPES[name].about}, {way}"


def slope(points: list[Point]) -> float:
    """Fit log(time) over log(rows + results)."""
    sizes, seconds = [p.size for p in points], [p.seconds for p in points]
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def beyond(points: list[Point]) -> float | None:
    """Give the slope from x16 to x64, if x64 was looked at."""
    return slope(points[CACHED - 1 :]) if len(points) > CACHED else None


def steep(points: list[Point]) -> bool:
    """Say whether the cost grows faster than rows + results."""
    found = beyond(points)
    return slope(points[:CACHED]) > STEEPEST or (found is not None and found > STEEPEST)


def markdown(machine: dict[str, Any], found: dict[str, list[Point]]) -> str:
    """Write the table."""
    lines = [
        f"{machine['cpu']}, {machine['time']}, load {machine['load']}. One thread, best of the"
        " runs. Slope: of log(time) over log(rows + results), 1 is linear.",
        "",
        "| shape | rows at x16 | results at x16 | ns per row + result, x1 / x4 / x16 (/ x64)"
        " | slope | x16 to x64 |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, points in found.items():
        costs = " / ".join(f"{p.seconds / p.size * 1e9:.1f}" for p in points)
        full, tail = points[CACHED - 1], beyond(points)
        lines.append(
            f"| {label(name)} | {full.rows:,} | {full.results:,} | {costs}"
            f" | {slope(points[:CACHED]):.2f} | {'' if tail is None else f'{tail:.2f}'} |"
        )
    return "\n".join([*lines, ""])


def plot(found: dict[str, list[Point]], paths: list[Path]) -> None:
    """Draw time against rows + results, with the line of a linear cost."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(9.5, 8), layout="constrained")
    for number, (name, points) in enumerate(found.items()):
        sizes, costs = [p.size for p in points], [p.seconds * 1e3 for p in points]
        named = f"{label(name)} ({slope(points):.2f})"
        style = "-" if name.endswith("batch") else "--"
        axis.loglog(sizes, costs, style, marker="osD^v"[number // 2 % 5], label=named)
    everything = [p for points in found.values() for p in points]
    low, high = min(p.size for p in everything), max(p.size for p in everything)
    cost = min(p.seconds / p.size for p in everything) * 1e3
    axis.loglog([low, high], [low * cost, high * cost], "k:", label="linear")
    axis.set(xlabel="rows + results", ylabel="ms", title="Cost against size (slope in brackets)")
    axis.legend(fontsize=6, ncols=2)
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)


def kept(path: Path) -> dict[str, list[Point]]:
    """Read the figures of shapes that were measured before."""
    if not path.exists():
        return {}
    shapes = json.loads(path.read_text())["shapes"]
    return {name: [Point(**point) for point in points] for name, points in shapes.items()}


def main() -> int:
    """Measure shapes; fail when one is steeper than allowed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slope", description=main.__doc__)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="folder for table and plot")
    chosen = parser.parse_args()
    names = chosen.shapes.split(",")
    if unknown := [name for name in names if name not in SHAPES]:
        parser.error(f"unknown shapes {unknown}; there are {', '.join(SHAPES)}")
    before = machine()
    ways = {n: ("session",) if SHAPES[n].pushed else ("batch", "session") for n in names}
    keys = [f"{n} {way}" for n in names for way in ways[n]]
    found = {}
    for key in track(keys, description="shapes"):
        name, way = key.split()
        found[key] = measure(SHAPES[name], way, chosen.repeat)
    chosen.out.mkdir(parents=True, exist_ok=True)
    found = kept(chosen.out / "slope.json") | found
    (chosen.out / "slope.md").write_text(markdown(before, found))
    figures = {name: [asdict(p) for p in points] for name, points in found.items()}
    before["load_after"] = load_now()
    everything = {"machine": before, "shapes": figures}
    (chosen.out / "slope.json").write_text(json.dumps(everything, indent=1) + "\n")
    plot(found, [chosen.out / "slope.png", chosen.out / "slope.svg"])
    console = Console()
    console.print((chosen.out / "slope.md").read_text(), soft_wrap=True, markup=False)
    worse = [label(name) for name, points in found.items() if steep(points)]
    if worse:
        console.print(f"steeper than {STEEPEST}: {'; '.join(worse)}")
    return len(worse)


if __name__ == "__main__":
    raise SystemExit(main())
