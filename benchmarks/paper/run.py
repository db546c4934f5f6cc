"""Regenerate the published figures: data, plots, and a table of claims.

python benchmarks/paper/run.py [--out benchmarks/paper/results]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
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
        axes.plot(x, [sum(each) / len(each) for each in by_x], marker=".", label=key)
        axes.fill_between(x, list(map(min, by_x)), list(map(max, by_x)), alpha=0.2)
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, write and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    runs: list[dict[str, Any]] = [{} for _ in SEEDS]
    for make in ALL:
        start = time.perf_counter()
        for seed, figures in zip(SEEDS, runs, strict=True):
            figures.update(make(seed))
        print(f"{make.__name__}: {time.perf_counter() - start:.0f} s", flush=True)
    kept = {str(seed): figures for seed, figures in zip(SEEDS, runs, strict=True)}
    (options.out / "figures.json").write_text(json.dumps(kept) + "\n", "utf-8")
    for name in runs[0]:
        draw(name, [figures[name] for figures in runs], options.out)
    text = table(judge(runs))
    (options.out / "claims.md").write_text(text, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
