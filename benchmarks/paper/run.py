"""Regenerate the published figures: data, plots, and a table of claims.

python benchmarks/paper/run.py [--out benchmarks/paper/results]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from claims import Verdict, judge
from figures import ALL

SEEDS = (1, 2, 3, 4, 5)


def draw(name: str, runs: Sequence[dict[str, Any]], folder: Path) -> None:
    """One plot as PNG: means over the seeds, and between which values these lie."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plot, axes = pyplot.subplots(figsize=(6, 3.6))
    figure = runs[0]
    for key, points in figure["series"].items():
        x = [at for at, _ in points]
        values = [[y for _, y in run["series"][key]] for run in runs]
        by_x = list(zip(*values, strict=True))
        means = [sum(each) / len(each) for each in by_x]
        bars = [
            [max(mean - min(each), 0.0) for mean, each in zip(means, by_x, strict=True)],
            [max(max(each) - mean, 0.0) for mean, each in zip(means, by_x, strict=True)],
        ]
        axes.errorbar(x, means, yerr=bars, marker=".", capsize=2, label=key)
    axes.set_title(name)
    axes.set_xlabel(figure["x"])
    axes.set_ylabel(figure["y"])
    axes.legend(fontsize="small")
    plot.tight_layout()
    plot.savefig(folder / f"{name}.png", dpi=90)
    pyplot.close(plot)


def table(verdicts: Sequence[Verdict]) -> str:
    """The claims as a Markdown table."""
    lines = ["| figure | claim | verdict | why |", "| --- | --- | --- | --- |"]
    for each in verdicts:
        lines.append(f"| {each.figure} | {each.claim} | {each.verdict} | {each.why} |")
    return "\n".join(lines) + "\n"


def simulated(
    jobs: int, only: Sequence[str] | None, stored: Path
) -> Iterator[dict[str, dict[str, Any]]]:
    """The figures of every seed, after each of them."""
    runs: list[dict[str, Any]] = [{} for _ in SEEDS]
    if only and stored.exists():
        runs = list(json.loads(stored.read_text("utf-8")).values())
    with ProcessPoolExecutor(jobs) as pool:
        for make in [one for one in ALL if not only or one.__name__ in only]:
            start = time.perf_counter()
            for figures, made in zip(runs, pool.map(make, SEEDS), strict=True):
                figures.update(made)
            print(f"{make.__name__}: {time.perf_counter() - start:.0f} s", flush=True)
            yield {str(seed): figures for seed, figures in zip(SEEDS, runs, strict=True)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, write and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--only", nargs="*", help="functions of figures.py; others stay as they are"
    )
    parser.add_argument("--judge", action="store_true", help="only judge what was simulated before")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    stored = options.out / "figures.json"
    if not options.judge:
        for runs_so_far in simulated(options.jobs, options.only, stored):
            stored.write_text(json.dumps(runs_so_far) + "\n", "utf-8")
    runs = list(json.loads(stored.read_text("utf-8")).values())
    for name in runs[0]:
        draw(name, [figures[name] for figures in runs], options.out)
    text = table(judge(runs))
    (options.out / "claims.md").write_text(text, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
