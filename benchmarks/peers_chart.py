"""The picture of the README, of what `benchmarks.run` measured: `python -m benchmarks.peers_chart`.

For each workload the best that each engine did on all cores, as times of windjoin's.
"""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "peers" / "results.json"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "peers.png"
SHOWN = {
    "W1": "equal keys\n2 x 2 M rows",
    "W1s": "equal keys, skewed\n2 x 500 k rows",
    "W2": "band\n2 x 200 k rows",
    "W5": "three streams\n3 x 500 k rows",
    "W7": "inequalities\n3 x 20 k rows",
    "intervals": "intervals that overlap\n2 x 100 k rows",
}
COLOURS = {"windjoin": "#d1495b", "duckdb": "#30638e", "polars": "#8d99ae", "pandas": "#c5c9d3"}


def best() -> dict[str, dict[str, float]]:
    """The least seconds of each engine, by workload."""
    found: dict[str, dict[str, float]] = {}
    for one in json.loads(RESULTS.read_text())["measurements"]:
        if one["workload"] in SHOWN and one["wall"] is not None:
            engines = found.setdefault(one["workload"], {})
            engines[one["engine"]] = min(engines.get(one["engine"], 1e9), one["wall"])
    return found


def main() -> None:
    """Draw it."""
    from matplotlib import pyplot

    found = best()
    figure, axes = pyplot.subplots(figsize=(9, 3.4))
    for place, workload in enumerate(SHOWN):
        engines = found[workload]
        for number, engine in enumerate(COLOURS):
            if engine not in engines:
                continue
            times = engines[engine] / engines["windjoin"]
            left = place + (number - 1.5) * 0.2
            label = engine if place == 0 else None
            axes.bar(left, times, 0.19, color=COLOURS[engine], label=label)
            axes.text(left, times * 1.05, f"{times:.3g}", ha="center", fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks(range(len(SHOWN)), SHOWN.values(), fontsize=8)
    axes.set_ylabel("time against windjoin's")
    axes.legend(frameon=False, ncols=4, fontsize=8, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.2)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
