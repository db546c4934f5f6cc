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


def draw(name: str, figure: dict[str, Any], folder: Path) -> None:
    """One plot as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plot, axes = pyplot.subplots(figsize=(6, 3.6))
    for key, points in figure["series"].items():
        axes.plot([x for x, _ in points], [y for _, y in points], marker=".", label=key)
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
        said = "holds" if each.holds else "**does not hold**"
        lines.append(f"| {each.figure} | {each.claim} | {said} | {each.why} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, write and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    figures: dict[str, dict[str, Any]] = {}
    for make in ALL:
        start = time.perf_counter()
        figures |= make()
        print(f"{make.__name__}: {time.perf_counter() - start:.0f} s", flush=True)
    (options.out / "figures.json").write_text(json.dumps(figures) + "\n", "utf-8")
    for name, figure in figures.items():
        draw(name, figure, options.out)
    text = table(judge(figures))
    (options.out / "claims.md").write_text(text, "utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
