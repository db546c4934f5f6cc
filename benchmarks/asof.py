"""As-of joins against polars and DuckDB:

    python -m benchmarks.asof [--rows N] [--out benchmarks/results/asof]

Trades with the last quote of their symbol, no older than a tolerance; sorted by time or not.  All
read the same Arrow tables and give Arrow tables; each figure is the best of several runs in turn,
and the number of partners found must be the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

from benchmarks.measure import headline, keep, load_now, machine

SYMBOLS = 10_000


def tables(rows: int, ordered: bool, seed: int = 3) -> dict[str, pa.Table]:
    """Rows with times all different on each side, so that ties decide nothing."""
    random = np.random.default_rng(seed)
    made = {}
    for name, odd in (("trades", 0), ("quotes", 1)):
        ts = np.cumsum(random.integers(1, 10, rows)) * 2 + odd
        if not ordered:
            ts = random.permutation(ts)
        made[name] = pa.table(
            {
                "ts": ts.astype("datetime64[us]"),
                "symbol": random.integers(0, SYMBOLS, rows),
                name[:-1]: random.random(rows),
            }
        )
    return made


def windjoin_way(given: dict[str, pa.Table], tolerance: int) -> Callable[[], pa.Table]:
    trades, quotes = (wj.stream(n, time="ts", window=f"{tolerance}us") for n in given)
    q = wj.join(
        trades, quotes, on=trades["symbol"] == quotes["symbol"], nearest=1, direction="backward",
        how="left", select=[trades["ts"], trades["symbol"], trades["trade"], quotes["quote"]],
    )  # fmt: skip
    return lambda: q.run(given)


def polars_way(given: dict[str, pa.Table], tolerance: int) -> Callable[[], Any]:
    import polars as pl

    trades, quotes = (pl.from_arrow(table) for table in given.values())

    def run() -> Any:
        left, right = trades.lazy().sort("ts"), quotes.lazy().sort("ts")
        return left.join_asof(
            right, on="ts", by="symbol", tolerance=f"{tolerance}us", check_sortedness=False
        ).collect()

    return run


def duckdb_way(given: dict[str, pa.Table], tolerance: int) -> Callable[[], Any]:
    import duckdb

    base = duckdb.connect()
    base.execute("set preserve_insertion_order = false")
    for name, table in given.items():
        base.register(f"{name}_arrow", table)
        base.execute(f"create table {name} as select * from {name}_arrow")

    def run() -> Any:
        # ASOF has one inequality: what is too old is made null behind it
        return base.sql(
            "select t.ts, t.symbol, t.trade,"
            f" case when q.ts >= t.ts - interval {tolerance} microseconds then q.quote end as quote"
            " from trades t asof left join quotes q on t.symbol = q.symbol and t.ts >= q.ts"
        ).to_arrow_table()

    return run


def measure(rows: int, ordered: bool, tolerance: int, tries: int) -> dict[str, Any]:
    """Best seconds of each way for one shape of tables."""
    given = tables(rows, ordered)
    ways = {
        "windjoin": windjoin_way(given, tolerance),
        "polars": polars_way(given, tolerance),
        "duckdb": duckdb_way(given, tolerance),
    }
    best = dict.fromkeys(ways, float("inf"))
    partners = {}
    for _ in range(tries):
        for name, way in ways.items():
            start = time.perf_counter()
            found = way()
            best[name] = min(best[name], time.perf_counter() - start)
            column = found[{"windjoin": "quotes_quote"}.get(name, "quote")]
            missing = column.null_count() if name == "polars" else column.null_count
            partners[name] = len(found) - int(missing)
            del found, column
    assert len(set(partners.values())) == 1, partners
    return {
        "rows": rows,
        "sorted": ordered,
        "symbols": SYMBOLS,
        "tolerance_us": tolerance,
        "partners": partners["windjoin"],
        "seconds": best,
    }


def markdown(about: dict[str, Any], lines: list[dict[str, Any]]) -> str:
    """Write the table."""
    versions = ", ".join(f"{name} {about['versions'][name]}" for name in ("polars", "duckdb"))
    text = [
        headline(about),
        f"Python {about['python']}, {versions}, pyarrow {about['versions']['pyarrow']}.",
        "",
        "| rows of each | sorted | partners | windjoin, s | polars, s | DuckDB, s"
        " | polars / windjoin | DuckDB / windjoin |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for x in lines:
        ours, *others = x["seconds"].values()
        shown = " | ".join(f"{one:.2f}" for one in (ours, *others, *(o / ours for o in others)))
        ordered = "yes" if x["sorted"] else "no"
        text.append(f"| {x['rows']:,} | {ordered} | {x['partners']:,} | {shown} |")
    return "\n".join([*text, ""])


def main() -> None:
    """Measure each shape of tables, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--tolerance", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, help="folder for the results")
    asked = parser.parse_args()
    before = machine()
    lines = [measure(asked.rows, how, asked.tolerance, asked.tries) for how in (True, False)]
    before["load_after"] = load_now()
    table = markdown(before, lines)
    if asked.out:
        keep(asked.out, "asof", before, table, lines)
    else:
        print(table)


if __name__ == "__main__":
    main()
