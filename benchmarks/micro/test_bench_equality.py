"""Batch equality: how many keys, how skewed, of which type."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.micro.rows import ENGINES, ROWS, SPACING, engine, keyed, timed, windjoin_engine

PARTNERS = 4  # per row, whatever the number of keys


def window_for(keys: int) -> int:
    """Give the window in which a row meets PARTNERS rows of its key."""
    return PARTNERS * keys * SPACING // 2


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("keys", [1, 100, 10_000, 100_000])
def test_keys(benchmark: Any, name: str, keys: int) -> None:
    tables = keyed(keys)
    chosen = engine(name, "equality", tables, window_for(keys))
    timed(benchmark, chosen, f"equality 2x{ROWS} rows, {keys} keys")


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("skew", [0.5, 1.0, 1.5])
def test_skew(benchmark: Any, name: str, skew: float) -> None:
    chosen = engine(name, "equality", keyed(10_000, skew=skew), 50_000)
    timed(benchmark, chosen, f"equality 2x{ROWS} rows, Zipf({skew}) keys")


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("of", ["int8", "int32", "int64", "sparse", "string", "dictionary"])
def test_key_type(benchmark: Any, name: str, of: str) -> None:
    keys = 100 if of == "int8" else 10_000
    chosen = engine(name, "equality", keyed(keys, of=of), window_for(keys))
    timed(benchmark, chosen, f"equality 2x{ROWS} rows, {of} keys")


@pytest.mark.parametrize("of", ["int64", "string"])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads(benchmark: Any, threads: int, of: str) -> None:
    tables = keyed(10_000, of=of, rows=5 * ROWS)
    chosen = windjoin_engine("equality", tables, window_for(10_000), 0.0, threads)
    timed(benchmark, chosen, f"equality 2x{5 * ROWS} rows, {of} keys, threads")
