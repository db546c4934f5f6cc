"""Three streams of equal keys: how many partners a row has, and one thread against two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.generators import table
from benchmarks.micro.rows import ROWS, SPACING, Engine, Tables, duckdb_engine, ticks, timed
from benchmarks.peers import OURS, duckdb_peer
from benchmarks.queries import join

KEYS = 10_000


def streams() -> Tables:
    """Make three streams with uniform keys."""
    random = np.random.default_rng(7)
    return {name: table(ts=ticks(ROWS), k=random.integers(0, KEYS, ROWS)) for name in "abc"}


def windjoin(tables: Tables, window: int, threads: int = 1) -> Engine:
    """Prepare windjoin."""
    query = join("equality", 3, window)
    bare = {name: rows.drop_columns(["i"]) for name, rows in tables.items()}
    return Engine(
        lambda: query.indices(bare, threads=threads), lambda found: [found[n] for n in "abc"]
    )


@pytest.mark.parametrize("name", [OURS, "duckdb"])
@pytest.mark.parametrize("partners", [0.25, 2.0])
def test_three_streams(benchmark: Any, name: str, partners: float) -> None:
    window = int(partners * KEYS * SPACING / 2)
    tables, sql = streams(), duckdb_peer.SQL["W5"]["bucket"]
    ours = name == OURS
    chosen = windjoin(tables, window) if ours else duckdb_engine(sql, tables, window, 0.0)
    timed(benchmark, chosen, f"three streams of {ROWS} rows, {partners:g} partners in a window")


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(benchmark: Any, threads: int) -> None:
    chosen = windjoin(streams(), KEYS * SPACING, threads)
    timed(benchmark, chosen, f"three streams of {ROWS} rows, threads")
