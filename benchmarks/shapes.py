"""Degenerate shapes in any size: each must cost no more than linear in input + output.

Every shape keeps its results per row constant while the rows grow, so that cost against
``rows + results`` is a straight line for an engine without a quadratic corner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from benchmarks.generators import I64, SECOND, generator, table

Kind = Literal["equality", "band", "overlap", "vectors", "images", "plane", "intervals"]


@dataclass(frozen=True, slots=True)
class Shape:
    """A family of inputs; ``generate(rows)`` gives the tables and the window."""

    name: str
    about: str
    rows: int  # per stream, at full size
    generate: Callable[[int], tuple[list[pa.Table], int]]
    kind: Kind = "equality"
    streams: int = 2
    pushed: bool = False  # continuous, one row per push


def _pair(name: str, ts: Callable[[], I64], k: Callable[[], I64]) -> list[pa.Table]:
    return [table(ts=ts(), k=k()) for _ in range(2)]


def window_zero(rows: int) -> tuple[list[pa.Table], int]:
    """Only equal times join: about four rows an instant, four keys."""
    random = generator("window_zero")
    return _pair(
        "window_zero",
        lambda: np.sort(random.integers(0, max(rows // 4, 1), rows)),
        lambda: random.integers(0, 4, rows),
    ), 0


def window_endless(rows: int) -> tuple[list[pa.Table], int]:
    """The window is longer than the data; nothing ever expires."""
    random = generator("window_endless")
    span = rows * 500
    return _pair(
        "window_endless",
        lambda: np.sort(random.integers(0, span, rows)),
        lambda: random.integers(0, max(rows // 4, 1), rows),
    ), 2 * span


def keys_once(rows: int) -> tuple[list[pa.Table], int]:
    """Every key has one row in each stream."""
    random = generator("keys_once")
    return _pair(
        "keys_once",
        lambda: np.sort(random.integers(0, rows * 1000, rows)),
        lambda: random.permutation(rows),
    ), 10 * SECOND


def key_one(rows: int) -> tuple[list[pa.Table], int]:
    """All rows have the same key; about 20 partners in the window."""
    random = generator("key_one")
    return _pair(
        "key_one",
        lambda: np.sort(random.integers(0, rows * 5000, rows)),
        lambda: np.full(rows, 42, dtype=np.int64),
    ), 50_000


def keys_hot(rows: int) -> tuple[list[pa.Table], int]:
    """Five keys at 100,000 rows a second; about 8 partners in the window."""
    random = generator("keys_hot")
    return _pair(
        "keys_hot",
        lambda: np.sort(random.integers(0, rows * 10, rows)),
        lambda: random.integers(0, 5, rows),
    ), 200


def times_equal(rows: int) -> tuple[list[pa.Table], int]:
    """All rows at one instant; about 20 partners per row."""
    random = generator("times_equal")
    return _pair(
        "times_equal",
        lambda: np.full(rows, 1_000_000_000, dtype=np.int64),
        lambda: random.integers(0, max(rows // 20, 1), rows),
    ), 10 * SECOND


def keys_null(rows: int) -> tuple[list[pa.Table], int]:
    """All keys are null; no results."""
    random = generator("keys_null")
    nothing = pa.nulls(rows, pa.int64())
    ts = [np.sort(random.integers(0, rows * 500, rows)) for _ in range(2)]
    return [table(ts=t, k=nothing) for t in ts], 10 * SECOND


def streams_sixteen(rows: int) -> tuple[list[pa.Table], int]:
    """Sixteen streams, every key once in each, at nearly the same time: one result per key."""
    random = generator("streams_sixteen")
    keys, centre = random.permutation(rows), np.arange(rows, dtype=np.int64) * 1000
    tables = []
    for _ in range(16):
        ts = centre + random.integers(0, 5000, rows)
        order = np.argsort(ts, kind="stable")
        tables.append(table(ts=ts[order], k=keys[order]))
    return tables, 5000


def band_wide(rows: int) -> tuple[list[pa.Table], int]:
    """A band that half of the window matches; about 20 partners per row."""
    random = generator("band_wide")
    tables = [
        table(ts=np.sort(random.integers(0, rows * 500, rows)), x=random.random(rows))
        for _ in range(2)
    ]
    return tables, 10_000


def band_one_value(rows: int) -> tuple[list[pa.Table], int]:
    """All values of the band column are equal: one cell holds everything."""
    random = generator("band_one_value")
    tables = [
        table(ts=np.sort(random.integers(0, rows * 500, rows)), x=np.full(rows, 0.5))
        for _ in range(2)
    ]
    return tables, 2_500


BAND_WIDE_REACH = 0.3

SHAPES = {
    shape.name: shape
    for shape in (
        Shape("window_zero", "a window of 0", 1_600_000, window_zero),
        Shape("window_endless", "a window longer than the data", 1_600_000, window_endless),
        Shape("keys_once", "10^6 keys with one row each", 1_000_000, keys_once),
        Shape("key_one", "one key for all rows", 200_000, key_one),
        Shape("keys_hot", "5 hot keys, 10^5 rows a second", 1_000_000, keys_hot),
        Shape("times_equal", "all times equal", 200_000, times_equal),
        Shape("keys_null", "all keys null", 1_600_000, keys_null),
        Shape("streams_sixteen", "16 streams", 64_000, streams_sixteen, streams=16),
        Shape("band_wide", "half of the window matches", 200_000, band_wide, "band"),
        Shape("band_one_value", "one value in the band column", 200_000, band_one_value, "band"),
        Shape("rows_single", "batches of a single row", 160_000, keys_once, pushed=True),
    )
}
