"""The same story from two agencies: news items that share most of their words.

    python examples/near_duplicates.py [FOLDER FOR THE PICTURE]

Two agencies send items. Some stories are sent by both, the second time a little rewritten. The
join finds the pairs within five minutes, in batch and while the items come in.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pyarrow as pa
import windjoin as wj

SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]


def words(chance: random.Random, count: int) -> list[str]:
    """Made-up words; few are frequent, most are rare."""
    numbers = (int(900 * chance.random() ** 3) for _ in range(count))
    return [SYLLABLES[n % 60] + SYLLABLES[n // 15] for n in numbers]


def items(chance: random.Random, stories: int) -> tuple[pa.Table, pa.Table]:
    """What the two agencies send: seconds, story number, words."""
    north: list[tuple[int, int, list[str]]] = []
    south: list[tuple[int, int, list[str]]] = []
    for story in range(stories):
        time, text = chance.randrange(12 * 3600), words(chance, 14)
        north.append((time, story, text))
        if chance.random() < 0.4:  # the other one follows, with some words of its own
            rewritten = [w if chance.random() < 0.8 else words(chance, 1)[0] for w in text]
            south.append((time + chance.randrange(240), story, rewritten))
        else:
            south.append((chance.randrange(12 * 3600), -story, words(chance, 14)))
    return _table(north), _table(south)


def _table(rows: list[tuple[int, int, list[str]]]) -> pa.Table:
    times, stories, texts = zip(*sorted(rows), strict=True)
    return pa.table({"time": times, "story": stories, "words": list(texts)})


def main(folder: Path) -> None:
    """Join, count what was found rightly, draw."""
    tables = dict(zip(("north", "south"), items(random.Random(4), 1500), strict=True))

    # 1. The question: 40 % of all words are common, and at least five of them.
    north, south = (wj.stream(name, time="time", window=300) for name in tables)
    likeness = wj.jaccard(north["words"], south["words"])
    query = wj.join(
        north,
        south,
        on=[likeness >= 0.4, wj.overlap(north["words"], south["words"]) >= 5],
        select=[
            north["story"],
            south["story"],
            likeness.alias("likeness"),
            (south["time"] - north["time"]).alias("delay"),
        ],
    )

    # 2. All at once.
    found = query.run(tables)
    same = sum(row["north_story"] == row["south_story"] for row in found.to_pylist())
    print(f"{len(found)} pairs of near duplicates, {same} of them are one story")
    print(found.sort_by([("likeness", "descending")]).slice(0, 3).to_pylist())

    # 3. The same while items arrive: a pair leaves with its second item.
    schemas = {name: table.schema for name, table in tables.items()}
    arrivals = sorted(
        (time, name, row)
        for name, table in tables.items()
        for row, time in enumerate(table["time"].to_pylist())
    )
    with query.open(schemas=schemas) as session:
        pushed = sum(
            len(session.push(name, tables[name].slice(row, 1))) for _, name, row in arrivals
        )
    print(f"{pushed} pairs in {len(arrivals)} pushes")
    print(query.explain())
    _draw(found, folder / "near_duplicates.png")


def _draw(found: pa.Table, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    same = [
        a == b
        for a, b in zip(
            *(found[n].to_pylist() for n in ("north_story", "south_story")), strict=True
        )
    ]
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.scatter(
        found["delay"], found["likeness"], c=["tab:red" if s else "tab:gray" for s in same]
    )
    axes.set(
        xlabel="seconds that the second agency is later",
        ylabel="jaccard of the words",
        title="Pairs found; red: the same story",
    )
    figure.savefig(path, dpi=110, bbox_inches="tight")
    print(f"picture: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
