"""Tables that are pushed a few rows at a time, and what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

ROWS = 400
HOSTS = pytest.mark.parametrize("hosts", [None, 2])


def rows(seed: int, more: dict[str, Any] | None = None) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {"t": np.sort(rng.integers(0, 2 * ROWS, ROWS)), "k": rng.integers(0, 20, ROWS)}
    return pa.table({**columns, "n": np.arange(ROWS), **(more or {})})


def query(**options: Any) -> wj.Query:
    a, b = (wj.stream(name, time="t", window=20, **options) for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"])


def pushed(
    joined: wj.Query, tables: dict[str, pa.Table], size: int, as_batch: bool = False, **options: Any
) -> list[tuple[int, int]]:
    schemas = {name: table.schema for name, table in tables.items()}
    found: list[tuple[int, int]] = []
    with joined.open(schemas, on_late="keep", **options) as session:
        for start in range(0, ROWS, size):
            for name, table in tables.items():
                some = table.slice(start, size).combine_chunks()
                out = session.push(name, some.to_batches()[0] if as_batch else some)
                found += zip(out["a_n"].to_pylist(), out["b_n"].to_pylist(), strict=True)
        out = session.close()
        found += zip(out["a_n"].to_pylist(), out["b_n"].to_pylist(), strict=True)
    return sorted(found)


def wanted(joined: wj.Query, tables: dict[str, pa.Table]) -> list[tuple[int, int]]:
    out = joined.run(tables)
    return sorted(zip(out["a_n"].to_pylist(), out["b_n"].to_pylist(), strict=True))


def holey(seed: int) -> pa.Table:
    """Rows out of order, some without a time or a key, with payload of every layout."""
    rng = np.random.default_rng(seed + 9)
    lists = [[n, None][: n % 3] if n % 4 else None for n in range(ROWS)]
    more = {
        "s": [None if n % 7 == 3 else "payload " * (n % 4) for n in range(ROWS)],
        "bit": pa.array(np.arange(ROWS) % 3 == 0),
        "l": lists,
        "v": pa.array([[n, n] for n in range(ROWS)], pa.list_(pa.int16(), 2)),
    }
    table = rows(seed, more)
    times = pa.array(table["t"].to_numpy() - rng.integers(0, 9, ROWS), mask=rng.random(ROWS) < 0.1)
    keys = pa.array(table["k"].to_numpy(), mask=rng.random(ROWS) < 0.1)
    return table.set_column(0, "t", times).set_column(1, "k", keys)


def in_session(joined: wj.Query, tables: dict[str, pa.Table], size: int, **options: Any) -> Any:
    """All results of a session, as dictionaries."""
    schemas = {name: table.schema for name, table in tables.items()}
    with joined.open(schemas, lateness=9, on_late="keep", **options) as session:
        found = [
            session.push(name, table.slice(start, size))
            for start in range(0, ROWS, size)
            for name, table in tables.items()
        ]
        found.append(session.close())
    return sorted(str(row) for out in found for row in out.to_pylist())
