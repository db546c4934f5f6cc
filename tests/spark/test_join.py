"""Joins of Spark DataFrames against the same query in one process, and what users do with them."""

from __future__ import annotations

import datetime
import decimal
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from windjoin.arrow import joiner
from windjoin.arrow.ddl import ddl_type

from tests.spark import MARKS
from tests.spark.queries import STRATEGIES, chain, frames, graph, rows_of, table

pytestmark = MARKS


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
    hosts = wjs.measured(query)
    assert len(hosts) == 8
    for what in ("rows", "comparisons"):
        work = [host[what] for host in hosts]
        assert max(work) / (sum(work) / 8) < 1.3, what


def test_joiner_says_its_schema_as_map_in_arrow_takes_it(spark: Any) -> None:
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    kinds = {
        "t": pa.int64(), "k": pa.string(), "day": pa.date32(), "at": pa.timestamp("us", "UTC"),
        "on": pa.timestamp("us"), "price": pa.decimal128(9, 2), "f": pa.float32(),
        "x y": pa.list_(pa.float64()), "m": pa.map_(pa.string(), pa.int16()), "ok": pa.bool_(),
        "s": pa.struct([("a`b", pa.int8()), ("c", pa.binary())]), "d": pa.duration("us"),
        "n": pa.int32(),
    }  # fmt: skip
    schema = pa.schema(list(kinds.items()))
    query = wj.join(a, b, on=a["k"] == b["k"], select=[a[name] for name in kinds])
    join = joiner(query, stream_column="kind", schemas={"a": schema, "b": schema})
    said = StructType.fromDDL(join.ddl)
    assert said.simpleString() == from_arrow_schema(join.schema).simpleString()

    plain = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"], (a["n"] + b["n"]).alias("sum")])
    join = joiner(plain, stream_column="kind", schemas={"a": schema, "b": schema})
    mixed = spark.createDataFrame(
        [("a", 1, "x", 2), ("b", 3, "x", 5), ("b", 30, "x", 7)],
        "kind string, t long, k string, n int",
    )
    found = mixed.repartition(1).mapInArrow(join, join.ddl).collect()
    assert [row.asDict() for row in found] == [{"a_k": "x", "sum": 7}]


def test_types_that_spark_has_not_are_named() -> None:
    with pytest.raises(wj.SchemaError, match=r"Spark has no type for uint8; leave the column out"):
        ddl_type(pa.uint8())
