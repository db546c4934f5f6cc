"""Two agencies' news when five times more comes than can be compared: shed work, not rows.

    python examples/news_overload.py [FOLDER FOR THE PICTURE]

South sends what North sent some 40 seconds before, a little rewritten. The join finds items that
share most of their words within two minutes; there is time for a fifth of the comparisons.
"""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import windjoin as wj

SECONDS, RATE, BEHIND = 300, 40, 40  # items a second of each agency
WARM = 150  # seconds until windows are full and something is known

AGENCIES = ("north", "south")
Items = list[tuple[int, int, int]]  # milliseconds, and which words an item has: a bit for each


def news(seed: int) -> dict[str, Items]:
    """What the two agencies send: two of three items of South are North's."""
    chance = random.Random(seed)

    def words(count: int) -> list[int]:
        return [int(126 * chance.random()) for _ in range(count)]

    def item(time: int, text: list[int]) -> tuple[int, int, int]:
        low, high = ({w for w in text if w < 63}, {w - 63 for w in text if w >= 63})
        return time, sum(1 << w for w in low), sum(1 << w for w in high)

    north = [(chance.randrange(SECONDS * 1000), words(14)) for _ in range(SECONDS * RATE)]
    south = []
    for time, text in north:
        if chance.random() < 2 / 3:
            rewritten = [w if chance.random() < 0.9 else words(1)[0] for w in text]
            south.append((time + int(chance.gauss(BEHIND * 1000, 4000)), rewritten))
        else:
            south.append((chance.randrange(SECONDS * 1000), words(14)))
    return {
        name: sorted(item(*one) for one in own)
        for name, own in zip(AGENCIES, (north, south), strict=True)
    }


def alike(low: int, high: int, other_low: int, other_high: int) -> bool:
    """Whether two items share eight words."""
    shared = 0
    for both in (low & other_low, high & other_high):
        rest = both
        while rest:
            rest &= rest - 1
            shared += 1
    return shared >= 8


def query() -> wj.Query:
    """Compare each pair within two minutes by a function of our own."""
    north, south = (wj.stream(name, time="t", window="2m", unit="ms") for name in AGENCIES)
    pairs = wj.udf(alike, north["low"], north["high"], south["low"], south["high"])
    return wj.join(north, south, on=pairs, select=[north["t"], south["t"]])


def play(items: dict[str, Items], shed: wj.Shedding) -> tuple[list[int], dict[str, Any]]:
    """Push the items second by second; results by second, and what is told of shedding."""
    found = [0] * (SECONDS + 60)
    at = dict.fromkeys(items, 0)
    with query().open(shed=shed) as session:
        for second in range(len(found)):
            for name, own in items.items():
                first = past = at[name]
                while past < len(own) and own[past][0] < (second + 1) * 1000:
                    past += 1
                at[name] = past
                if past > first:
                    columns = zip(*own[first:past], strict=True)
                    rows = pa.table(
                        dict(zip(("t", "low", "high"), map(list, columns), strict=True))
                    )
                    found[second] += session.push(name, rows).num_rows
        return found, session.metrics["shedding"]


def recall_by_time(found: list[int], truth: list[int], each: int = 15) -> list[float]:
    """Of stretches of some seconds."""
    return [
        sum(found[at : at + each]) / max(sum(truth[at : at + each]), 1)
        for at in range(0, SECONDS, each)
    ]


def draw(series: dict[str, list[float]], told: dict[str, Any], path: Path) -> None:
    """Recall over time, and where in the window it is looked."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for name, values in series.items():
        left.plot([15 * n + 7.5 for n in range(len(values))], values, label=name)
    left.set(xlabel="seconds", ylabel="recall", ylim=(0, 1.05))
    left.legend()
    windows = told["streams"]["south"]["directions"]["north"]["worth"]
    for one in windows:
        colour = "tab:blue" if one["asked"] > 0 else "lightgrey"
        right.bar(one["from"], one["worth"], one["to"] - one["from"], align="edge", color=colour)
    right.set(
        xlabel="age of North's items, seconds", ylabel="results per comparison",
        title="what an item of South is compared with (blue)",
    )  # fmt: skip
    figure.savefig(path, dpi=110)


def main() -> None:
    """Play it three times and show what was found."""
    warnings.simplefilter("ignore", wj.SheddingWarning)
    items = news(1)
    truth, _ = play(items, wj.Shedding(comparisons_per_s=1e12, clock="event"))
    each = 2 * RATE * RATE * 120  # a new item of either meets two minutes of the other's
    series = {}
    told: dict[str, Any] = {}
    for name, policy in (("selective", "selective"), ("random drop", "drop")):
        shed = wj.Shedding(comparisons_per_s=each / 5, clock="event", policy=policy)
        found, own = play(items, shed)
        series[name] = recall_by_time(found, truth)
        late = sum(found[WARM:]) / sum(truth[WARM:])
        print(
            f"{name}: {late:.0%} of the pairs after {WARM} s;"
            f" told {own['recall']:.0%} ({own['recall_low']:.0%} to {own['recall_high']:.0%})"
            f" of all, {sum(found) / sum(truth):.0%} is true"
        )
        told = own if policy == "selective" else told
    ages = sorted(
        (one["from"], one["to"])
        for one in told["streams"]["south"]["directions"]["north"]["worth"]
        if one["asked"] > 0
    )
    first, last = ages[0][0], ages[-1][1]
    print(f"items of South are compared with North's of {first:g} to {last:g} s before")
    draw(series, told, Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "news_overload.png")


if __name__ == "__main__":
    main()
