"""Joins on hosts of this machine, by which `windjoin simulate --calibrate` learns what rows cost.

Pairs of rows cost enough in them for hosts to be worth it.  Every stream has a row per tick.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from windjoin.function_nodes import udf
from windjoin.query import Query
from windjoin.query_making import join
from windjoin.similarity import overlap
from windjoin.streams import Stream, stream

Columns = Callable[[Generator, int], dict[str, Any]]
Conditions = Callable[[Sequence[Stream]], list[Any]]


@dataclass(frozen=True)
class HostTrial:
    """A join, how it is shared, and how many rows and ticks it goes over."""

    name: str
    strategy: str
    streams: int
    rows: int  # of each stream
    window: int
    segment: int
    columns: Columns
    conditions: Conditions
    scanned: bool = True  # no index says which rows of a window are worth a look

    def query(self, window: int) -> Query:
        """The join over windows of that length."""
        sides = [stream(name, time="t", window=window) for name in "abc"[: self.streams]]
        return join(*sides, on=self.conditions(sides))

    def tables(self, rows: int) -> dict[str, pa.Table]:
        """So many rows of each stream."""
        random = np.random.default_rng(5)
        return {
            name: pa.table(
                {"t": np.sort(random.integers(0, rows, rows)), **self.columns(random, rows)}
            )
            for name in "abc"[: self.streams]
        }


def host_trials() -> list[HostTrial]:
    """Two functions, keys, three streams, sets; by every strategy that has hosts share a join.

    >>> [(trial.name, trial.strategy) for trial in host_trials()]
    [('function', 'atr'), ('slope', 'psp'), ('keys', 'groups'), ('three', 'ctr'), ('sets', 'atr')]
    """
    return [
        HostTrial("function", "atr", 2, 20_000, 1_000, 1_000, _number, _waves(0.9999)),
        HostTrial("slope", "psp", 2, 20_000, 1_000, 100, _number, _slopes),
        HostTrial(
            "keys", "groups", 2, 60_000, 6_000, 1_500, _keyed, _same_key_and_wave, scanned=False
        ),
        HostTrial("three", "ctr", 3, 10_000, 400, 200, _number, _waves(0.99)),
        HostTrial("sets", "atr", 2, 60_000, 4_000, 4_000, _items, _overlap),
    ]


def _number(random: Generator, rows: int) -> dict[str, Any]:
    return {"x": random.random(rows) * 10}


def _keyed(random: Generator, rows: int) -> dict[str, Any]:
    return {"k": random.integers(0, 64, rows), **_number(random, rows)}


def _items(random: Generator, rows: int) -> dict[str, Any]:
    counts = random.integers(4, 9, rows)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    items = pa.array(random.integers(0, 400, int(ends[-1])))
    return {"s": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)}


def _waves(least: float) -> Conditions:
    """Neighbouring streams meet in any function of two numbers."""

    def conditions(sides: Sequence[Stream]) -> list[Any]:
        return [_wave(a, b, least) for a, b in pairwise(sides)]

    return conditions


def _wave(left: Stream, right: Stream, least: float) -> Any:
    return udf(lambda x, y: math.sin(13 * x + 78 * y) > least, left["x"], right["x"])


def _slopes(sides: Sequence[Stream]) -> list[Any]:
    steep = udf(lambda x, y: math.atan2(x + 1, y + 1) > 1.45, sides[0]["x"], sides[1]["x"])
    return [steep]


def _same_key_and_wave(sides: Sequence[Stream]) -> list[Any]:
    return [sides[0]["k"] == sides[1]["k"], _wave(sides[0], sides[1], 0.999)]


def _overlap(sides: Sequence[Stream]) -> list[Any]:
    return [overlap(sides[0]["s"], sides[1]["s"]) >= 3]
