"""Random rows for the named workloads.  The order of the draws is part of the definition."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

I64 = NDArray[np.int64]
SECOND = 1_000_000  # all event times are int64 microseconds


def generator(name: str) -> Generator:
    """Give the random generator that belongs to a workload's name."""
    seed = 7
    for letter in name:
        seed = (seed * 131 + ord(letter)) % 2**31
    return np.random.default_rng(seed)


def table(**columns: Any) -> pa.Table:
    """Make a table with the row numbers in front, as column ``i``."""
    rows = len(columns["ts"])
    return pa.table({"i": np.arange(rows, dtype=np.int64), **columns})


def times(random: Generator, rows: int, seconds: int) -> I64:
    """Draw sorted event times, uniform over ``seconds``."""
    return np.sort(random.integers(0, seconds * SECOND, rows, dtype=np.int64))


def zipf(random: Generator, rows: int, domain: int, exponent: float) -> I64:
    """Draw ranks 0 .. domain - 1, rank r with a weight of ``(r + 1) ** -exponent``."""
    cumulated = np.cumsum(np.arange(1, domain + 1, dtype=np.float64) ** -exponent)
    cumulated /= cumulated[-1]
    ranks = np.searchsorted(cumulated, random.random(rows))
    return np.minimum(ranks, domain - 1).astype(np.int64)


@numba.njit(cache=True)
def _take_sets(pool: I64, sizes: I64, offsets: I64, items: NDArray[np.int32]) -> int:
    """Fill each set with the next distinct items of the pool; give the draws used, or -1."""
    drawn = 0
    for row in range(len(sizes)):
        start, stop = offsets[row], offsets[row]
        while stop - start < sizes[row]:
            if drawn == len(pool):
                return -1
            item = pool[drawn]
            drawn += 1
            place = stop
            while place > start and items[place - 1] >= item:
                place -= 1
            if place < stop and items[place] == item:
                continue
            for position in range(stop, place, -1):
                items[position] = items[position - 1]
            items[place] = item
            stop += 1
    return drawn


def drifting(random: Generator, tables: list[pa.Table], each_second: int) -> list[pa.Table]:
    """The same sets under other numbers: popular ones change, so many with each second of time."""
    numbers = random.permutation(100_000)

    def moved(table: pa.Table) -> pa.Table:
        sets = table["s"].combine_chunks()
        second = np.repeat(table["ts"].to_numpy() // SECOND, np.diff(sets.offsets.to_numpy()))
        ranks = (sets.values.to_numpy() - 1 + each_second * second) % len(numbers)
        items = pa.array(1 + numbers[ranks], pa.int32())
        moved_sets = pa.ListArray.from_arrays(sets.offsets, items)
        return table.set_column(table.column_names.index("s"), "s", moved_sets)

    return [moved(table) for table in tables]


def item_sets(
    random: Generator, rows: int, *, domain: int, exponent: float, mean: float, deviation: float
) -> pa.ListArray:
    """Draw sets of distinct items 1 .. domain, sorted inside a set, popular items first."""
    sizes = np.maximum(1, np.rint(random.normal(mean, deviation, rows))).astype(np.int64)
    pool = zipf(random, int(sizes.sum() * 4) + 1000, domain, exponent) + 1
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    items = np.empty(offsets[-1], dtype=np.int32)
    if _take_sets(pool, sizes, offsets, items) < 0:
        raise ValueError(f"{len(pool)} draws do not fill {rows} sets of distinct items")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(items))


def vectors(values: NDArray[Any]) -> pa.FixedSizeListArray:
    """Wrap the rows of a matrix as fixed-size lists."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def equality(random: Generator, streams: int, rows: int, keys: int) -> list[pa.Table]:
    """Rows over 1000 s with uniform integer keys."""
    return [
        table(ts=times(random, rows, 1000), k=random.integers(0, keys, rows))
        for _ in range(streams)
    ]


def skewed(random: Generator) -> list[pa.Table]:
    """Zipf(1.1) keys: the most popular key has a tenth of all rows."""
    return [
        table(ts=times(random, 500_000, 1000), k=zipf(random, 500_000, 100_000, 1.1))
        for _ in range(2)
    ]


def band(random: Generator) -> list[pa.Table]:
    """Values on a grid of 1e-7: with a threshold between grid points no rounding matters."""
    return [
        table(ts=times(random, 200_000, 1000), x=random.integers(0, 10_000_000, 200_000) / 1e7)
        for _ in range(2)
    ]


def sets(
    random: Generator, *, rows: int, seconds: int, domain: int, mean: float, deviation: float
) -> list[pa.Table]:
    """Item sets over a skewed domain."""

    def drawn() -> pa.ListArray:
        return item_sets(random, rows, domain=domain, exponent=0.8, mean=mean, deviation=deviation)

    # the times of a stream are drawn before its sets
    return [table(ts=times(random, rows, seconds), s=drawn()) for _ in range(2)]


def clustered_vectors(random: Generator) -> list[pa.Table]:
    """Whole-numbered float32 vectors of 40 dimensions: squared distances are exact in float32."""
    centres, rows = random.normal(0, 20, (20, 40)), 12_000
    tables = []
    for _ in range(3):
        around = centres[random.integers(0, 20, rows)]
        values = np.rint(around + random.normal(0, 8, (rows, 40))).astype(np.float32)
        tables.append(table(ts=times(random, rows, 600), v=vectors(values)))
    return tables


def images(
    random: Generator, rows: int = 1_000, seconds: int = 20, noise: float = 6
) -> list[pa.Table]:
    """Images of 5000 x 3 bytes: one of 20 smooth scenes, its brightness, and noise."""
    scenes = np.repeat(random.integers(0, 256, (20, 250, 3)), 20, axis=1).astype(np.float32)
    tables = []
    for _ in range(2):
        scene, brightness = random.integers(0, 20, rows), random.normal(0, 12, rows)
        noisy = scenes[scene] + brightness[:, None, None] + random.normal(0, noise, (rows, 5000, 3))
        pixels = np.clip(noisy, 0, 255).astype(np.uint8).reshape(rows, 15_000)
        tables.append(table(ts=times(random, rows, seconds), v=vectors(pixels)))
    return tables


def plane(random: Generator) -> list[pa.Table]:
    """Points with two coordinates on a grid of 1e-6."""
    return [
        table(
            ts=times(random, 20_000, 1000),
            x=random.integers(0, 1_000_000, 20_000) / 1e6,
            y=random.integers(0, 1_000_000, 20_000) / 1e6,
        )
        for _ in range(3)
    ]


def intervals(random: Generator, rows: int = 100_000) -> list[pa.Table]:
    """Intervals [lo, hi], 200 long at most, on an axis of a million."""
    tables = []
    for _ in range(2):
        low = random.random(rows) * 1e6
        high = low + random.random(rows) * 200
        tables.append(table(ts=times(random, rows, 1000), lo=low, hi=high))
    return tables


def spread_keys(tables: list[pa.Table]) -> list[pa.Table]:
    """Send the keys all over int64, equal keys to equal keys."""
    factor = np.int64(0x9E3779B97F4A7C15 - 2**64)  # odd, so no two keys meet
    with np.errstate(over="ignore"):
        return [t.set_column(2, "k", pa.array(t["k"].to_numpy() * factor)) for t in tables]


def in_nanoseconds(tables: list[pa.Table]) -> list[pa.Table]:
    """Count times in nanoseconds: 32 bits of them span four seconds."""
    return [t.set_column(1, "ts", pa.array(t["ts"].to_numpy() * 1000)) for t in tables]


def text_keys(tables: list[pa.Table]) -> list[pa.Table]:
    """Replace key number n by a text of 12 bytes."""
    highest = max(int(t["k"].to_numpy().max()) for t in tables)
    names = pa.array([f"user-{number:07d}" for number in range(highest + 1)])
    return [t.set_column(2, "k", names.take(t["k"].combine_chunks())) for t in tables]


def with_payload(random: Generator, tables: list[pa.Table]) -> list[pa.Table]:
    """Add three numeric columns and a text; with the row number that is 4 numeric and 1 text."""
    names = pa.array([f"item {number:07d}" for number in range(100_000)])
    filled = []
    for rows in tables:
        count = rows.num_rows
        rows = rows.append_column("price", pa.array(random.random(count)))
        rows = rows.append_column("size", pa.array(random.integers(0, 1000, count, dtype=np.int32)))
        rows = rows.append_column("score", pa.array(random.random(count, dtype=np.float32)))
        text = names.take(pa.array(random.integers(0, 100_000, count)))
        filled.append(rows.append_column("text", text))
    return filled
