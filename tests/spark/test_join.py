"""Joins of Spark DataFrames against the same query in one process, and what users do with them."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import functions as F

from tests.spark import MARKS

pytestmark = MARKS

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


@pytest.mark.parametrize(
    ("strategy", "closed"), list(zip(STRATEGIES, ["both", "right"] * 3, strict=True))
)
def test_join_gives_the_rows_of_one_process(spark: Any, strategy: str, closed: str) -> None:
    query = chain(closed)
    tables = {name: table(seed, 600) for seed, name in enumerate("abc")}
    found = wjs.join(query, frames(spark, tables, 3), hosts=3, strategy=strategy)
    expected = rows_of(query.run(tables))
    assert expected.total() > 100
    assert rows_of(found) == expected


@pytest.mark.parametrize("strategy", ["atr", "psp"])
def test_join_takes_any_predicate(spark: Any, strategy: str) -> None:
    query = graph()
    tables = {name: table(seed + 7, 250) for seed, name in enumerate("abc")}
    found = wjs.join(query, frames(spark, tables, 2), hosts=3, strategy=strategy, segment=40)
    expected = rows_of(query.run(tables))
    assert expected.total() > 20
    assert rows_of(found) == expected


@pytest.mark.parametrize(
    ("strategy", "rows"), [("atr", (0, 0, 0)), ("ctr", (40, 0, 40)), ("groups", (1, 1, 1))]
)
def test_join_takes_empty_frames_and_empty_partitions(
    spark: Any, strategy: str, rows: tuple[int, ...]
) -> None:
    query = chain()
    tables = {name: table(3, n) for name, n in zip("abc", rows, strict=True)}
    found = wjs.join(query, frames(spark, tables, 4), hosts=2, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(tables))


def test_join_composes_with_frames(spark: Any) -> None:
    query = chain()
    tables = {name: table(seed, 300) for seed, name in enumerate("abc")}
    given = frames(spark, tables, 2)
    joined = wjs.join(query, given, hosts=2, strategy="atr")
    assert joined.columns == ["a_n", "b_n", "b_w", "c_n"]
    counted = joined.where(F.col("b_w") == "longer").groupBy("a_n").count()
    expected = Counter(a for a, _, w, _ in rows_of(query.run(tables)).elements() if w == "longer")
    assert dict(map(tuple, counted.collect())) == dict(expected)
    rest = {name: frame for name, frame in given.items() if name != "a"}
    same = given["a"].transform(lambda frame: wjs.join(query, {"a": frame, **rest}, hosts=2))
    assert rows_of(same) == rows_of(joined)


@pytest.mark.parametrize("strategy", ["atr", "ctr"])
def test_join_tells_rows_of_one_frame_apart(spark: Any, strategy: str) -> None:
    a, b, c = (wj.stream(name, time="ts", window=12) for name in "abc")
    query = wj.join(
        a,
        b,
        c,
        on=[a["k"] == b["k"], b["k"] == c["k"]],
        select=[a["n"], b["n"], c["n"]],
        exclude_self=True,
    )
    own = table(5, 200)
    frame = spark.createDataFrame(own).repartition(3)
    found = wjs.join(query, dict.fromkeys("abc", frame), hosts=3, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(dict.fromkeys("abc", own)))


def test_join_keeps_every_type_of_payload(spark: Any) -> None:
    rows = spark.sql(
        """
        SELECT TIMESTAMP'2024-03-31 01:59:59.000001' + make_interval(0,0,0,0,0,0,id) AS ts,
               id % 3 AS k, CAST(id AS decimal(20,3)) AS money, array(id, null) AS many,
               map('a', id) AS named, named_struct('p', id, 'q', array('z')) AS nested,
               CAST('bytes' AS binary) AS raw, DATE'2024-01-01' AS day,
               TIMESTAMP_NTZ'2024-03-31 02:30:00' AS local, CAST(id AS tinyint) AS small,
               INTERVAL '1 02:03:04.5' DAY TO SECOND AS took, id > 2 AS flag,
               CAST(id AS float) AS single, CAST(null AS string) AS nothing, 'dot' AS `a.b`
        FROM range(8)
        """
    )
    a, b = (wj.stream(name, time="ts", window="2s") for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    found = wjs.join(query, {"a": rows, "b": rows}, hosts=2, strategy="atr")
    kinds = [field.dataType for field in rows.schema]
    assert [field.dataType for field in found.schema] == kinds + kinds
    left, right = rows.alias("l"), rows.alias("r")
    expected = left.join(
        right,
        F.expr("l.k = r.k AND abs(unix_micros(l.ts) - unix_micros(r.ts)) <= 2000000"),
    )
    assert sorted(map(str, map(tuple, found.collect()))) == sorted(
        map(str, map(tuple, expected.collect()))
    )
    assert found.first()["a_money"].__class__ is decimal.Decimal
    assert found.first()["a_local"] == datetime.datetime(2024, 3, 31, 2, 30)


@pytest.mark.parametrize("strategy", ["atr", "groups"])
def test_join_stays_balanced_on_hot_keys_and_bursts(spark: Any, strategy: str) -> None:
    from windjoin.spark.joining import last_plan

    rng = np.random.default_rng(1)
    n = 40_000
    bursts = np.sort(
        np.concatenate([rng.integers(0, 10**6, n // 2), rng.integers(0, 10**4, n // 2)])
    )
    hot = np.where(rng.random(n) < 0.8, rng.integers(0, 5, n), rng.integers(5, 4000, n))
    own = pa.table({"ts": bursts, "k": hot})
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    frame = spark.createDataFrame(own)
    found = wjs.join(query, {"a": frame, "b": frame}, hosts=8, strategy=strategy)
    assert found.count() == query.run({"a": own, "b": own}).num_rows
    planned = last_plan(query)
    assert planned is not None
    assert planned.meter is not None
    rows = [host["rows"] for host in planned.meter.hosts(0).values()]
    assert len(rows) == 8
    assert max(rows) / (sum(rows) / 8) < 1.3
