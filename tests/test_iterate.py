"""Generators over batches, plain and asynchronous, give what a batch run gives."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

NAMES = ("a", "b")
A, B = (wj.stream(name, time="t", window=20) for name in NAMES)
QUERY = wj.join(A, B, on=A["k"] == B["k"])


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"t": np.sort(rng.integers(0, 500, 200)), "k": rng.integers(0, 9, 200)})


TABLES = {name: table(seed) for seed, name in enumerate(NAMES)}


def rows(tables: list[pa.Table]) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row.values()) for one in tables for row in one.to_pylist())


def test_iterate_gives_what_run_gives():
    sources = {name: one.to_batches(max_chunksize=13) for name, one in TABLES.items()}
    assert rows(list(QUERY.iterate(sources))) == rows([QUERY.run(TABLES)])


def test_iterate_takes_batches_of_very_different_sizes():
    sources = {
        "a": TABLES["a"].to_batches(max_chunksize=3),
        "b": TABLES["b"].to_batches(max_chunksize=150),
    }
    assert rows(list(QUERY.iterate(sources))) == rows([QUERY.run(TABLES)])


def test_aiterate_gives_what_run_gives():
    async def batches(name: str) -> AsyncIterator[pa.RecordBatch]:
        for batch in TABLES[name].to_batches(max_chunksize=17):
            await asyncio.sleep(0)
            yield batch

    async def collect() -> list[pa.Table]:
        sources = {name: batches(name) for name in NAMES}
        return [one async for one in QUERY.aiterate(sources, lateness=500)]

    assert rows(asyncio.run(collect())) == rows([QUERY.run(TABLES)])


def test_sources_must_be_one_for_each_stream():
    with pytest.raises(wj.QueryError, match="sources: got 'a'; give one iterable of batches for"):
        list(QUERY.iterate({"a": []}))
    with pytest.raises(
        wj.QueryError, match=r"sources\['b'\] is a int; give an iterable of batches"
    ):
        list(QUERY.iterate({"a": [], "b": 3}))  # type: ignore[dict-item]


def test_asynchronous_sources_must_be_asynchronous():
    async def collect() -> None:
        async for _ in QUERY.aiterate({"a": [], "b": []}):  # type: ignore[dict-item]
            pass

    with pytest.raises(wj.QueryError, match="is a list; give an asynchronous iterable of batches"):
        asyncio.run(collect())
