"""Streams with matches at some distance in time, played into a session that sheds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import windjoin as wj
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Columns = dict[str, I64]
EACH = 250  # milliseconds between pushes


@dataclass
class Run:
    """What a session gave, and said of it."""

    results: list[tuple[int, int]] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    fractions: list[float] = field(default_factory=list)  # after every push
    per_push: list[int] = field(default_factory=list)
    explained: str = ""

    @property
    def shed(self) -> dict[str, Any]:
        return self.metrics["shedding"]


def lagging(
    seconds: int, rate: int, lag_s: float = 6.0, seed: int = 1, rates: dict[int, int] | None = None
) -> dict[str, Columns]:
    """Streams a and b of ``rate`` rows a second; a row of b matches what a had ``lag_s`` before.

    rates: from which second on there are how many rows
    """
    random = np.random.default_rng(seed)
    streams = {}
    per_second = np.full(seconds, rate)
    for begin, other in (rates or {}).items():
        per_second[begin:] = other
    for name, lag in (("a", 0.0), ("b", lag_s)):
        times = [
            np.sort(random.integers(s * 1000, s * 1000 + 1000, n))
            for s, n in enumerate(per_second.tolist())
        ]
        time = np.concatenate(times)
        item = (time - int(1000 * lag)) // 50 * 7 + random.integers(0, 3, len(time))
        streams[name] = {"t": time, "x": 1_000_000 + item}
    return streams


def scanned(window: str = "10s", other: str | None = None) -> wj.Query:
    """A join for which every row of the window is a candidate."""
    a = wj.stream("a", time="t", window=window, unit="ms")
    b = wj.stream("b", time="t", window=other or window, unit="ms")
    return wj.join(a, b, on=a["x"] * b["x"] == b["x"] * b["x"])


def pushes(streams: dict[str, Columns], each: int = EACH) -> Iterator[tuple[str, Columns]]:
    """Rows of all streams in turn, so many milliseconds at a time."""
    end = max(int(columns["t"][-1]) for columns in streams.values()) + 1
    for begin in range(0, end, each):
        for name, columns in streams.items():
            first, past = np.searchsorted(columns["t"], [begin, begin + each])
            if past > first:
                yield name, {key: values[first:past] for key, values in columns.items()}


def play(
    query: wj.Query, streams: dict[str, Columns], each: int = EACH, **options: Any
) -> Run:  # fmt: skip
    """Push all rows; what came of it."""
    run = Run()
    names = list(streams)
    with query.open(rows_only=True, **options) as session:
        for name, rows in pushes(streams, each):
            found = session.push(name, rows)
            run.results += zip(*(found[one].tolist() for one in names), strict=True)
            run.per_push.append(len(found[names[0]]))
            if "shed" in options:
                run.fractions.append(session.metrics["shedding"]["fraction"])
        run.metrics = session.metrics
        run.explained = session.explain()
    return run


def by_hash(streams: dict[str, Columns], window: int) -> set[tuple[int, int]]:
    """What an exact join of a and b on x gives, by definition."""
    places: dict[int, list[int]] = {}
    for row, item in enumerate(streams["a"]["x"].tolist()):
        places.setdefault(item, []).append(row)
    a, b = streams["a"]["t"].tolist(), streams["b"]["t"].tolist()
    return {
        (row, other)
        for other, item in enumerate(streams["b"]["x"].tolist())
        for row in places.get(item, ())
        if abs(a[row] - b[other]) <= window
    }
