"""Cost against size for degenerate shapes: time must grow no faster than rows + results.

    python -m benchmarks.slope --out benchmarks/results/slope            # all shapes
    python -m benchmarks.slope --shapes keys_hot,key_one --out benchmarks/results/slope

Each shape runs at x1, x4 and x16.  The slope is that of log(time) over log(rows + results): 1 is
linear, 2 is quadratic.  The number of results is compared with the oracle's at every size.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import track

from benchmarks.measure import best_of, machine
from benchmarks.oracle import oracle
from benchmarks.peers import letters
from benchmarks.queries import join
from benchmarks.shapes import BAND_WIDE_REACH, SHAPES, Shape

SCALES = (16, 4, 1)  # rows at full size over rows of the step: x1, x4, x16
STEEPEST = 1.25  # caches are left behind between x1 and x16; a quadratic corner gives 2


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


def single_rows(tables: list[pa.Table], window: int, repeat: int) -> tuple[int, float]:
    """Push row by row, all streams in the order of time."""
    ts = np.concatenate([t["ts"].to_numpy() for t in tables])
    k = np.concatenate([t["k"].to_numpy() for t in tables])
    stream = np.repeat(letters(len(tables)), [len(t) for t in tables])
    order = np.argsort(ts, kind="stable")
    batches = [
        (name, {"ts": ts[i : i + 1], "k": k[i : i + 1]})
        for name, i in zip(stream[order].tolist(), order.tolist(), strict=True)
    ]

    def run() -> int:
        total = 0
        with join("equality", len(tables), window).open(rows_only=True) as session:
            for name, columns in batches:
                total += len(session.push(name, columns)["a"])
            total += len(session.close()["a"])
        return total

    return best_of(repeat, run)


def measure(shape: Shape, repeat: int) -> list[Point]:
    """Run a shape at its three sizes."""
    points = []
    for scale in SCALES:
        tables, window = shape.generate(shape.rows // scale)
        right = expected(shape, tables, window)
        if shape.pushed:
            results, seconds = single_rows(tables, window, repeat)
        else:
            results, seconds = batch(shape, tables, window, repeat)
        if results != right:
            raise RuntimeError(f"{shape.name}: {results:,} results instead of {right:,}")
        points.append(Point(sum(len(t) for t in tables), results, seconds))
    return points


def slope(points: list[Point]) -> float:
    """Fit log(time) over log(rows + results)."""
    sizes, seconds = [p.size for p in points], [p.seconds for p in points]
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def markdown(machine: dict[str, Any], found: dict[str, list[Point]]) -> str:
    """Write the table."""
    lines = [
        f"{machine['cpu']}, {machine['time']}, load {machine['load']}. One thread, best of the"
        " runs. Slope: of log(time) over log(rows + results), 1 is linear.",
        "",
        "| shape | rows at x16 | results at x16 | ns per row + result, x1 / x4 / x16 | slope |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, points in found.items():
        costs = " / ".join(f"{p.seconds / p.size * 1e9:.1f}" for p in points)
        lines.append(
            f"| {SHAPES[name].about} | {points[-1].rows:,} | {points[-1].results:,}"
            f" | {costs} | {slope(points):.2f} |"
        )
    return "\n".join([*lines, ""])


def plot(found: dict[str, list[Point]], paths: list[Path]) -> None:
    """Draw time against rows + results, with the line of a linear cost."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(8.5, 6), layout="constrained")
    for number, (name, points) in enumerate(found.items()):
        sizes, costs = [p.size for p in points], [p.seconds * 1e3 for p in points]
        label = f"{SHAPES[name].about} ({slope(points):.2f})"
        axis.loglog(sizes, costs, marker="osD^v"[number % 5], label=label)
    everything = [p for points in found.values() for p in points]
    low, high = min(p.size for p in everything), max(p.size for p in everything)
    cost = min(p.seconds / p.size for p in everything) * 1e3
    axis.loglog([low, high], [low * cost, high * cost], "k:", label="linear")
    axis.set(xlabel="rows + results", ylabel="ms", title="Cost against size (slope in brackets)")
    axis.legend(fontsize=8)
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)


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
    found = {n: measure(SHAPES[n], chosen.repeat) for n in track(names, description="shapes")}
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "slope.md").write_text(markdown(before, found))
    figures = {name: [asdict(p) for p in points] for name, points in found.items()}
    before["load_after"] = round(os.getloadavg()[0], 2)
    everything = {"machine": before, "shapes": figures}
    (chosen.out / "slope.json").write_text(json.dumps(everything, indent=1) + "\n")
    plot(found, [chosen.out / "slope.png", chosen.out / "slope.svg"])
    console = Console()
    console.print((chosen.out / "slope.md").read_text(), soft_wrap=True, markup=False)
    steep = [name for name, points in found.items() if slope(points) > STEEPEST]
    if steep:
        console.print(f"steeper than {STEEPEST}: {', '.join(steep)}")
    return len(steep)


if __name__ == "__main__":
    raise SystemExit(main())
