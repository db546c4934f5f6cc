"""Memory of workers: rows many times over what a worker may have, and windows that fit.

    python -m benchmarks.spark.memory --rows 4_000_000 --limit 1200m

``spark.executor.pyspark.memory`` limits the address space of every Python worker; a worker that
kept its rows would fail.  Three amounts of rows, each twice the one before: what is held stays.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import functions as F

from benchmarks.spark.record import Line, record
from benchmarks.spark.run import session

BYTES = 200  # of text in every row


def main(arguments: Sequence[str] | None = None) -> int:
    """Join more and more rows with the same limit; print what hosts held at most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="of each stream, at most")
    parser.add_argument("--limit", default="1200m", help="memory of a Python worker")
    given = parser.parse_args(arguments)
    spark = session("local[2]", **{"spark.executor.pyspark.memory": given.limit})
    a, b = (wj.stream(name, time="ts", window=1000) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], select=[a["text"], b["ts"]])
    text = F.rpad(F.col("id").cast("string"), BYTES, "x")
    print(f"workers may have {given.limit}")
    most = []
    for rows in (given.rows // 4, given.rows // 2, given.rows):
        frame = spark.range(rows).select(
            F.col("id").alias("ts"), (F.hash("id") % 1000).alias("k"), text.alias("text")
        )
        joined = wjs.join(query, {"a": frame, "b": frame}, hosts=2, strategy="atr")
        found = joined.agg(F.count("*"), F.sum(F.length("a_text"))).first()
        held = max(host["most_bytes"] for host in wjs.measured(query))
        most.append(held)
        print(
            f"2 x {rows:,} rows, {2 * rows * (BYTES + 12) / 2**20:,.0f} MiB: {found[0]:,} results,"
            f" at most {held / 2**20:.0f} MiB of rows held at a time",
            flush=True,
        )
    sizes = ", ".join(f"{held / 2**20:.0f}" for held in most)
    total = 2 * given.rows * (BYTES + 12) / 2**20
    line = Line(
        "rows held: most over least while input grows fourfold", max(most) / min(most), 1.25,
        at_least=False,
        detail=f"{sizes} MiB at a time, of up to {total:,.0f} MiB; limit {given.limit}",
    )  # fmt: skip
    record("Memory of a worker with spark.executor.pyspark.memory", [line])
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
