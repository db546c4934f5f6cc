"""Inputs of the small benchmarks, their baselines, and the check that both give the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.checksum import checksum
from benchmarks.generators import I64, table, zipf
from benchmarks.peers import OURS, duckdb_peer
from benchmarks.queries import join
from benchmarks.shapes import Kind

ROWS = 200_000
SPACING = 500  # microseconds: 2,000 rows a second and stream
Tables = dict[str, pa.Table]


def ticks(rows: int) -> I64:
    """Give evenly spread times."""
    return np.arange(rows, dtype=np.int64) * SPACING


def keyed(keys: int, *, skew: float = 0.0, of: str = "int64", rows: int = ROWS) -> Tables:
    """Make two streams with keys that are uniform, or Zipf with exponent ``skew``."""
    random = np.random.default_rng(7)
    tables = {}
    for name in "ab":
        numbers = zipf(random, rows, keys, skew) if skew else random.integers(0, keys, rows)
        tables[name] = table(ts=ticks(rows), k=as_type(numbers, of))
    return tables


def as_type(numbers: I64, of: str) -> pa.Array:
    """Give keys of a type, equal keys for equal numbers."""
    if of == "string":
        return pa.array(numbers).cast(pa.string())
    if of == "dictionary":
        return pa.array(numbers).cast(pa.string()).dictionary_encode()
    if of == "sparse":
        return pa.array(numbers * np.int64(1_000_003_000_017))
    return pa.array(numbers).cast(pa.type_for_alias(of))


def valued(rows: int = ROWS) -> Tables:
    """Make two streams with values in [0, 1)."""
    random = np.random.default_rng(7)
    return {name: table(ts=ticks(rows), x=random.random(rows)) for name in "ab"}


@dataclass(frozen=True, slots=True)
class Engine:
    """What is timed, and how its answer becomes row numbers."""

    run: Callable[[], Any]
    members: Callable[[Any], list[I64]]


def duckdb_engine(sql: str, tables: Tables, window: int, reach: float) -> Engine:
    """Prepare DuckDB with one thread; its rows go into a temporary table."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    for name, rows in tables.items():
        connection.register("arrow_rows", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_rows")
    sql = sql.replace("$window", str(window)).replace("$reach", f"{reach!r}::DOUBLE")

    def members(_: None) -> list[I64]:
        found = connection.execute("SELECT * FROM found").fetchnumpy()
        return [np.asarray(found[name]) for name in tables]

    def run() -> None:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE found AS {sql}")

    return Engine(run, members)


def windjoin_engine(
    kind: Kind, tables: Tables, window: int, reach: float, threads: int = 1
) -> Engine:
    """Prepare windjoin."""
    query = join(kind, 2, window, reach)
    bare = {name: rows.drop_columns(["i"]) for name, rows in tables.items()}
    return Engine(
        lambda: query.indices(bare, threads=threads), lambda found: [found[n] for n in "ab"]
    )


def engine(name: str, kind: Kind, tables: Tables, window: int, reach: float = 0.0) -> Engine:
    """Prepare one of the engines of a group."""
    if name == OURS:
        return windjoin_engine(kind, tables, window, reach)
    return duckdb_engine(BASELINES[kind], tables, window, reach)


BASELINES = {
    "equality": duckdb_peer.SQL["W1"]["bucket"],
    "band": duckdb_peer.SQL["W2"]["cell"],
    "intervals": duckdb_peer.SQL["intervals_window"]["iejoin"],
}
ENGINES = (OURS, "duckdb")
_answers: dict[str, tuple[int, int]] = {}


def timed(benchmark: Any, engine: Engine, group: str) -> None:
    """Time an engine; keep results and bytes; the engines of one group must agree."""
    benchmark.group = group
    members = engine.members(benchmark(engine.run))
    answer = len(members[0]), checksum(members)
    first = _answers.setdefault(group, answer)
    assert answer == first, f"{group}: {answer} here, {first} by another engine"
    benchmark.extra_info["results"] = len(members[0])
    benchmark.extra_info["bytes"] = sum(m.nbytes for m in members)
