"""``windjoin demo``: three generated streams, joined on an equality, a band and a time order."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj
from windjoin.cli.files import write_table
from windjoin.cli.run import add_run_options, timed_run, whole
from windjoin.cli.text import first_rows
from windjoin.errors import InputError
from windjoin.query import Query

ROWS = 400_000  # calls, and as many trades
CALLS_PER_SECOND = 100
SECONDS = 1_000_000  # microseconds
BEGIN = int(datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()) * SECONDS
QUERY_FILE = """\
# Who traded soon after a call, near a price that the news had named not long before?
on = [
    'calls["person"] == trades["person"]',
    'abs(trades["price"] - news["price"]) <= 0.005',
    'calls["ts"] < trades["ts"]',
]
output = "results.parquet"

[streams.calls]
path = "calls.parquet"
time = "ts"
window = "60s"

[streams.trades]
path = "trades.parquet"
time = "ts"
window = "30s"

[streams.news]
path = "news.parquet"
time = "ts"
window = "5m"
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser("demo", help="join three generated streams and show what happens")
    parser.add_argument("--rows", type=whole, default=ROWS, help="calls, and as many trades")
    parser.add_argument("--seed", type=int, default=1, help="other rows for another seed")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="write streams and query file there"
    )
    parser.add_argument("--spark", action="store_true", help="join on Spark, on this machine")
    add_run_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Generate, join, and tell."""
    print(f"generating {given.rows:,} calls and trades", flush=True)
    tables = generate(given.rows, given.seed)
    query = demo_query()
    for name, table in tables.items():
        print(f"{name}: {table.num_rows:,} rows of {', '.join(table.column_names)}")
    if given.keep is not None:
        keep(tables, given.keep)
    if given.spark:
        return on_spark(query, tables)
    print("\njoining", flush=True)
    results = timed_run(query, tables, given.threads, given.progress)
    print(f"\n{query.explain()}\n")
    print(first_rows(results, 5))
    return 0


def on_spark(query: Query, tables: dict[str, pa.Table]) -> int:
    """The same join as DataFrames."""
    if find_spec("pyspark") is None:
        raise InputError("--spark: Spark is not installed; pip install 'windjoin[spark]' brings it")
    print("\nstarting Spark", flush=True)
    from windjoin.spark.demo import join_tables

    join_tables(query, tables)
    return 0


def demo_query() -> Query:
    """The query of QUERY_FILE as a program writes it."""
    calls = wj.stream("calls", time="ts", window="60s")
    trades = wj.stream("trades", time="ts", window="30s")
    news = wj.stream("news", time="ts", window="5m")
    return wj.join(
        calls,
        trades,
        news,
        on=[
            calls["person"] == trades["person"],
            abs(trades["price"] - news["price"]) <= 0.005,
            calls["ts"] < trades["ts"],
        ],
    )


def generate(rows: int, seed: int) -> dict[str, pa.Table]:
    """Calls; trades, half of them by somebody who was called seconds ago; news of prices.

    >>> generate(rows=100, seed=1)["trades"].column_names
    ['ts', 'person', 'price', 'amount']
    """
    rng = np.random.default_rng(seed)
    called = BEGIN + np.sort(rng.integers(0, rows * SECONDS // CALLS_PER_SECOND + 1, rows))
    person = rng.integers(0, 20_000, rows)
    traded = called + (rng.exponential(10.0, rows) * SECONDS).astype(np.int64)
    by_others = rng.random(rows) < 0.5
    trader = np.where(by_others, rng.integers(0, 20_000, rows), person)
    order = np.argsort(traded, kind="stable")
    told = np.sort(rng.choice(called, max(1, rows // 10)))
    return {
        "calls": pa.table(
            {"ts": _times(called), "person": person, "seconds": rng.integers(5, 600, rows)}
        ),
        "trades": pa.table(
            {
                "ts": _times(traded[order]),
                "person": trader[order],
                "price": _prices(rng, rows),
                "amount": rng.integers(1, 500, rows),
            }
        ),
        "news": pa.table(
            {"ts": _times(told), "id": np.arange(len(told)), "price": _prices(rng, len(told))}
        ),
    }


def _times(microseconds: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Any:
    return pa.array(microseconds, pa.int64()).cast(pa.timestamp("us", "UTC"))


def _prices(rng: np.random.Generator, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.round(rng.normal(100.0, 10.0, n), 3)


def keep(tables: dict[str, pa.Table], folder: Path) -> None:
    """Leave the streams and the query file for ``windjoin run``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "query.toml").write_text(QUERY_FILE)
    except OSError as error:
        raise InputError(f"--keep: cannot write to {str(folder)!r}: {error.strerror}") from error
    for name, table in tables.items():
        write_table(table, folder / f"{name}.parquet")
    print(f"kept in {folder}; try: windjoin run {folder / 'query.toml'}")
