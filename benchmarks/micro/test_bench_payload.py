"""Payload out: the join with its columns, against the gathers of those columns alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.generators import with_payload
from benchmarks.micro.rows import ROWS, SPACING, Tables, keyed, windjoin_engine
from benchmarks.queries import join

WINDOW = 20_000 * SPACING // 2


def streams() -> Tables:
    """Make two streams with 4 numeric columns and one text, besides time and key."""
    tables = keyed(10_000)
    filled = with_payload(np.random.default_rng(7), list(tables.values()))
    return dict(zip(tables, filled, strict=True))


def joined(tables: Tables) -> Any:
    """Prepare the join with all columns."""
    query = join("equality", 2, WINDOW)
    return lambda: query.run(tables, threads=1)


def joined_by_two(tables: Tables) -> Any:
    """Prepare the same on two threads."""
    query = join("equality", 2, WINDOW)
    return lambda: query.run(tables, threads=2)


def gathers(tables: Tables) -> Any:
    """Prepare the gathers alone, row numbers given: no join with a payload can be faster."""
    chosen = windjoin_engine("equality", tables, WINDOW, 0.0)
    rows = [pa.array(member) for member in chosen.members(chosen.run())]
    return lambda: [t.take(r) for t, r in zip(tables.values(), rows, strict=True)]


@pytest.mark.parametrize("prepare", [joined, joined_by_two, gathers])
def test_payload(benchmark: Any, prepare: Any) -> None:
    benchmark.group = f"payload 2x{ROWS} rows, 6 numbers and a text per side"
    found = benchmark(prepare(streams()))
    parts = found if isinstance(found, list) else [found]
    benchmark.extra_info["results"] = parts[0].num_rows
    benchmark.extra_info["bytes"] = sum(part.nbytes for part in parts)
