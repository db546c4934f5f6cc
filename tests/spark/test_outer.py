"""Outer, semi and anti joins of DataFrames against the same query in one process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs

from tests.spark import MARKS
from tests.spark.queries import frames, rows_of

pytestmark = MARKS

A, C = (wj.stream(name, time="ts", window=6) for name in "ac")
B = wj.stream("b", time="ts", window=3, where=lambda b: b["n"] > 2)
ON = [A["k"] == B["k"], B["k"] == C["k"]]


def table(seed: int, rows: int = 60) -> pa.Table:
    """Rows of which some have no key, some no time, and some are equal."""
    numbers = [(7 * seed + n * n) % 41 for n in range(rows)]
    keys = [None if n % 11 == 0 else n % 5 for n in numbers]
    times = [None if n % 17 == 3 else n for n in numbers]
    columns = {"ts": pa.array(times, pa.int64()), "k": pa.array(keys, pa.int64())}
    return pa.table({**columns, "n": pa.array([n % 9 for n in numbers], pa.int64())})


TABLES = {name: table(seed) for seed, name in enumerate("abc")}
TWO = {name: TABLES[name] for name in "ab"}


@pytest.mark.parametrize(
    ("how", "strategy"),
    [("left", "atr"), ("right", "groups"), ("full", "psp"), ("semi", "ctr"), ("anti", "auto")],
)
def test_every_how_gives_the_rows_of_one_process(spark: Any, how: Any, strategy: str) -> None:
    query = wj.join(A, B, on=ON[0], how=how)
    found = wjs.join(query, frames(spark, TWO, 3), hosts=2, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(TWO))
    assert "strategy" in wjs.explain(query)


@pytest.mark.parametrize(
    ("options", "strategy"),
    [({"keep": [A, C]}, "ctr"), ({"exists": [C]}, "atr"), ({"missing": [C]}, "single")],
)
def test_several_streams(spark: Any, options: Any, strategy: str) -> None:
    query = wj.join(A, B, C, on=ON, **options)
    found = wjs.join(query, frames(spark, TABLES, 2), hosts=2, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(TABLES))


def test_selected_columns_and_names_that_are_taken(spark: Any) -> None:
    query = wj.join(A, B, on=ON[0], how="left", select=[A["n"], (A["n"] + B["n"]).alias("sum")])
    found = wjs.join(query, frames(spark, TWO, 2), hosts=2, strategy="atr")
    assert rows_of(found) == rows_of(query.run(TWO))
    taken = {name: rows.append_column("windjoin_id", rows["n"]) for name, rows in TWO.items()}
    with pytest.raises(wj.SchemaError, match="is a name that windjoin uses itself"):
        wjs.join(query, frames(spark, taken, 2))
