"""Similarity beyond the named workloads: wide vectors, images of noise, pushes.

The baselines: single-precision matrix products of whole windows, a scan that sums up all bytes of
every pair, the same rows in one batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from numpy.typing import NDArray

from benchmarks.generators import I64
from benchmarks.micro.rows import Engine, Tables, timed
from benchmarks.queries import query as query_of
from benchmarks.workloads import WORKLOADS

ALL = 1_000_000  # a window longer than the data
BLOCK = 256  # rows of one matrix product


def streams() -> list[Any]:
    """Two streams whose rows all meet."""
    return [wj.stream(name, time="ts", window=ALL) for name in "ab"]


def listed(values: NDArray[Any]) -> pa.Table:
    """A table of rows that are lists."""
    flat = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return pa.table({"ts": np.arange(len(values)), "v": flat})


def ours(on: Any, tables: Tables) -> Engine:
    """windjoin with one thread."""
    query = wj.join(*streams(), on=on)
    return Engine(lambda: query.indices(tables, threads=1), lambda found: [found[n] for n in "ab"])


@cache
def clustered(dims: int, rows: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Small whole numbers around few centres: squared distances are exact in float32."""
    random = np.random.default_rng(dims)
    centres = random.integers(-5, 6, (50, dims))
    made = [
        centres[random.integers(0, 50, rows)] + random.integers(-2, 3, (rows, dims))
        for _ in range(2)
    ]
    return made[0].astype(np.float32), made[1].astype(np.float32)


def products(x: NDArray[np.float32], y: NDArray[np.float32], limit: float) -> list[I64]:
    """Row numbers of all pairs within a squared distance."""
    norms = (x * x).sum(1), (y * y).sum(1)
    found = []
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        squares = norms[0][part, None] + norms[1] - 2 * (x[part] @ y.T)
        a, b = np.nonzero(squares <= limit)
        found.append((a + start, b))
    return [np.concatenate([pair[n] for pair in found]) for n in (0, 1)]


@pytest.mark.parametrize("name", ["windjoin", "blas"])
@pytest.mark.parametrize("dims", [128, 768])
def test_wide_vectors(benchmark: Any, name: str, dims: int) -> None:
    x, y = clustered(dims, 20_000)
    limit = 4.0 * dims + 0.5  # those of one centre
    if name == "blas":
        engine = Engine(lambda: products(x, y, limit), lambda found: found)
    else:
        a, b = streams()
        engine = ours(wj.l2(a["v"], b["v"]) <= limit**0.5, {"a": listed(x), "b": listed(y)})
    timed(benchmark, engine, f"vectors 2x20000 of {dims} dims")


@cache
def images(pixels: int, smooth: bool) -> tuple[pa.Table, pa.Table]:
    """500 images each of 3 channels: noise, or smooth scenes with some."""
    random = np.random.default_rng(pixels)
    made = []
    scenes = np.repeat(random.integers(0, 256, (20, pixels // 50, 3)), 50, axis=1)
    for _ in range(2):
        if smooth:
            values = scenes[random.integers(0, 20, 500)] + random.normal(0, 6, (500, pixels, 3))
        else:
            values = random.integers(0, 256, (500, pixels, 3))
        made.append(listed(np.clip(values, 0, 255).astype(np.uint8).reshape(500, -1)))
    return made[0], made[1]


@pytest.mark.parametrize("name", ["windjoin", "scan"])
@pytest.mark.parametrize("pixels", [5_000, 10_000, 20_000])
@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "noise"])
def test_images(benchmark: Any, name: str, pixels: int, smooth: bool) -> None:
    """No index serves "unlike": the scan sums up all bytes of all pairs, and finds the others."""
    left, right = images(pixels, smooth)
    a, b = streams()
    apart = wj.mean_abs_diff(a["v"], b["v"])
    limit = 40 if smooth else 84.9
    near = ours(apart <= limit, {"a": left, "b": right})
    far = ours(apart > limit, {"a": left, "b": right})
    benchmark.group = f"images 2x500 of {pixels} x 3 bytes, {'smooth' if smooth else 'noise'}"
    found = benchmark((near if name == "windjoin" else far).run)
    other = (far if name == "windjoin" else near).run()
    assert len(found["a"]) + len(other["a"]) == 500 * 500
    benchmark.extra_info["results"] = len(found["a"])


def pushed(query: Any, tables: Tables, size: int) -> Callable[[], int]:
    """Both streams in turn, ``size`` rows at a time in the order of their times."""
    parts = [
        (rows["ts"][start].as_py(), name, rows.slice(start, size))
        for name, rows in tables.items()
        for start in range(0, len(rows), size)
    ]
    parts.sort(key=lambda part: part[0])

    def run() -> int:
        with query.open(rows_only=True) as session:
            return sum(len(session.push(name, rows)["a"]) for _, name, rows in parts)

    return run


CONTINUOUS = {"W3": 12_000, "W4": 3_000}  # rows of a stream


@pytest.mark.parametrize("workload", CONTINUOUS)
@pytest.mark.parametrize("size", [0, 64, 1], ids=["batch", "64", "1"])
def test_pushes(benchmark: Any, workload: str, size: int) -> None:
    chosen = WORKLOADS[workload]
    rows = CONTINUOUS[workload]
    names = "abc"[: chosen.streams]
    tables = {
        name: part.drop_columns(["i"]).slice(0, rows)
        for name, part in zip(names, chosen.tables(), strict=True)
    }
    query = query_of(chosen)

    def batch() -> int:
        return len(query.indices(tables, threads=1)["a"])

    benchmark.group = f"{workload}, {rows} rows per stream"
    results = benchmark(pushed(query, tables, size) if size else batch)
    assert results == batch()
    benchmark.extra_info["results"] = results
