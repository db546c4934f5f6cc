"""Queries and rows for joins on Spark, and how their results are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import windjoin as wj

STRATEGIES = ["single", "atr", "groups", "ctr", "psp", "auto"]
WORDS = np.array(["x", "y", "longer", "ähnlich", ""])


def table(seed: int, rows: int, *, ordered: bool = False) -> pa.Table:
    """Times with ties and nulls, keys with nulls, text, numbers, in any order."""
    rng = np.random.default_rng(seed)
    times = rng.integers(0, 4 * rows // 3 + 1, rows)
    if ordered:
        times.sort()
    return pa.table(
        {
            "ts": pa.array(times, mask=rng.random(rows) < 0.02),
            "k": pa.array(rng.integers(0, 12, rows), mask=rng.random(rows) < 0.05),
            "w": pa.array(rng.choice(WORDS, rows)),
            "x": rng.normal(size=rows),
            "n": np.arange(rows),
        }
    )


def chain(closed: Any = "both") -> wj.Query:
    a, b, c = (
        wj.stream(name, time="ts", window=w) for name, w in zip("abc", (15, 30, 8), strict=True)
    )
    conditions = [a["k"] == b["k"], b["k"] == c["k"], a["x"] < c["x"]]
    return wj.join(a, b, c, on=conditions, select=[a["n"], b["n"], b["w"], c["n"]], closed=closed)


def graph() -> wj.Query:
    """Band, function, text and a condition that only an evaluation decides; no key for all."""
    a, b, c = (
        wj.stream(name, time="ts", window=w) for name, w in zip("abc", (9, 0, 20), strict=True)
    )
    return wj.join(
        a,
        b,
        c,
        on=[
            abs(a["x"] - b["x"]) <= 0.4,
            wj.udf(lambda x, y: x * y > 0.1, b["x"], c["x"]),
            (a["w"] == c["w"]) | (a["k"] == c["k"]),
        ],
        select=[a["n"], b["n"], c["n"]],
    )


def frames(spark: Any, tables: Mapping[str, pa.Table], partitions: int) -> dict[str, Any]:
    return {
        name: spark.createDataFrame(one).repartition(partitions) for name, one in tables.items()
    }


def rows_of(found: Any) -> Counter[Any]:
    """Rows as they come out of Spark, or out of Arrow."""
    if isinstance(found, pa.Table):
        return Counter(zip(*(found.column(n).to_pylist() for n in found.column_names), strict=True))
    return Counter(tuple(row) for row in found.collect())
