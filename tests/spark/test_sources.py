"""Frames that are Parquet files are read by the tasks; whatever is more is left to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs
from pyarrow import parquet
from pyspark.sql import functions as F
from windjoin.arrow.parquet import BATCH_BYTES, ParquetPart, read
from windjoin.spark import joining
from windjoin.spark.sources import FrameSource, local_paths, parquet_paths

from tests.spark import MARKS
from tests.spark.queries import chain, rows_of, table

pytestmark = MARKS


def written(folder: Path, rows: pa.Table, files: int = 3) -> str:
    """Rows as Parquet files with small row groups, in a folder whose name must be quoted."""
    target = folder / "with a blank"
    target.mkdir()
    size = -(-rows.num_rows // files)
    for number in range(files):
        part = rows.slice(number * size, size)
        parquet.write_table(part, target / f"part {number}.parquet", row_group_size=100)
    return str(target)


@pytest.fixture
def exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of files cross an exchange, however few they are."""
    monkeypatch.setattr(joining, "READ_ROWS", 0)


@pytest.mark.parametrize("strategy", ["atr", "groups", "single"])
def test_every_host_reads_small_files_itself(spark: Any, tmp_path: Path, strategy: str) -> None:
    a, b = (wj.stream(name, time="ts", window=12) for name in "ab")
    query = wj.join(a, b, on=[a["k"] == b["k"], a["n"] < b["n"]], select=[a["n"], b["n"]])
    tables = {name: table(seed, 900) for seed, name in enumerate("ab")}
    given = {}
    for name, rows in tables.items():
        (tmp_path / name).mkdir()
        given[name] = spark.read.parquet(written(tmp_path / name, rows))
    found = wjs.join(query, given, hosts=3, strategy=strategy)
    shown = found._jdf.queryExecution().toString()
    assert "windjoin_read_a_b" in shown
    assert "Exchange" not in shown
    assert rows_of(found) == rows_of(query.run(tables))
    assert rows_of(found.coalesce(1)) == rows_of(query.run(tables))
    text = wjs.explain(query)
    assert "exchanges: none, as every host reads the files" in text
    assert "measured: 1800 rows, " in text
    assert " 0 bytes in 0 segments" in text
    hosts = wjs.measured(query)
    assert sum(host["results"] for host in hosts) == query.run(tables).num_rows
    assert f"  host 0: {hosts[0]['rows']} rows, " in text
    given["b"] = given["b"].where("n >= 0")
    assert f"hosts: {len(hosts)}, exchanges: 1" in wjs.explain(
        query, given, hosts=3, strategy=strategy
    )


@pytest.mark.parametrize("strategy", ["atr", "psp"])
@pytest.mark.usefixtures("exchanged")
def test_join_of_files_gives_the_rows_of_one_process(
    spark: Any, tmp_path: Path, strategy: str
) -> None:
    query, given = chain(), {}
    tables = {name: table(seed, 900) for seed, name in enumerate("abc")}
    for name, rows in tables.items():
        (tmp_path / name).mkdir()
        given[name] = spark.read.parquet(written(tmp_path / name, rows))
        assert parquet_paths(given[name]) is not None
    found = wjs.join(query, given, hosts=3, strategy=strategy)
    assert rows_of(found) == rows_of(query.run(tables))
    assert "read by tasks from Parquet files: a, b, c" in wjs.explain(query)


@pytest.mark.parametrize(("strategy", "rows_read"), [("groups", 0), ("groups", 10**6), ("ctr", 0)])
def test_rows_of_files_are_told_apart(
    spark: Any, tmp_path: Path, strategy: str, rows_read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "READ_ROWS", rows_read)
    rows = table(4, 700)
    frame = spark.read.parquet(written(tmp_path, rows))
    a, b = (wj.stream(name, time="ts", window=12) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], select=[a["n"], b["n"]], exclude_self=True)
    found = wjs.join(query, {"a": frame, "b": frame}, hosts=3, strategy=strategy)
    assert rows_of(found) == rows_of(query.run({"a": rows, "b": rows}))


@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS"])
def test_every_type_of_files_arrives_as_spark_reads_it(
    spark: Any, tmp_path: Path, times: str
) -> None:
    rows = spark.sql(
        """
        SELECT TIMESTAMP'2024-03-31 01:59:59.000001' + make_interval(0,0,0,0,0,0,id) AS ts,
               id % 3 AS k, CAST(id AS decimal(20,3)) AS money, CAST(id AS decimal(7,2)) AS cents,
               array(id, null) AS many, map('a', id) AS named,
               named_struct('p', id, 'q', array('z')) AS nested, CAST('bytes' AS binary) AS raw,
               DATE'2024-01-01' AS day, DATE'0001-01-01' AS early,
               TIMESTAMP_NTZ'2024-03-31 02:30:00' AS local, CAST(id AS tinyint) AS small,
               TIMESTAMP'1600-01-01 00:00:00' AS moment, id > 2 AS flag,
               CAST(id AS float) AS single, CAST(null AS string) AS nothing
        FROM range(8)
        """
    )
    spark.conf.set("spark.sql.parquet.outputTimestampType", times)
    rows.write.parquet(str(tmp_path / "typed"))
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    frame = spark.read.parquet(str(tmp_path / "typed"))
    a, b = (wj.stream(name, time="ts", window="2s") for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    direct = wjs.join(query, {"a": frame, "b": frame}, hosts=2, strategy="atr")
    assert "read by tasks" in wjs.explain(query)
    spark.conf.set("spark.windjoin.readFiles", "false")
    by_spark = wjs.join(query, {"a": frame, "b": frame}, hosts=2, strategy="atr")
    spark.conf.unset("spark.windjoin.readFiles")
    assert "read by tasks" not in wjs.explain(query)
    assert direct.schema == by_spark.schema
    assert sorted(map(str, direct.collect())) == sorted(map(str, by_spark.collect()))
    assert direct.count() == 8


def test_what_is_more_than_files_is_left_to_spark(spark: Any, tmp_path: Path) -> None:
    folder = written(tmp_path, table(1, 50))
    plain = spark.read.parquet(folder)
    assert len(parquet_paths(plain) or []) == 3
    assert parquet_paths(plain.select("k", "ts")) is not None
    plain.write.partitionBy("w").parquet(str(tmp_path / "parted"))
    others = [
        plain.where("k > 3"), plain.withColumn("k", F.col("k") + 1), plain.limit(3),
        plain.select("k", F.col("n").alias("ts")),
        plain.repartition(2), plain.sample(0.5), spark.read.parquet(str(tmp_path / "parted")),
        spark.read.option("datetimeRebaseMode", "LEGACY").parquet(folder),
        plain.unionAll(plain), spark.range(3), spark.createDataFrame([(1,)], "k int"),
    ]  # fmt: skip
    assert [parquet_paths(one) for one in others] == [None] * len(others)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    assert parquet_paths(plain) is None
    spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert local_paths(["hdfs://host/a.parquet"]) is None
    assert local_paths(["file:///a%20b/c.parquet", "file:///a/_metadata"]) == ["/a b/c.parquet"]


def test_wide_rows_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "wide.parquet")
    rows = pa.table({"ts": range(500), "v": [b"x" * 100_000] * 500})
    parquet.write_table(rows, path, use_dictionary=False)
    found = list(read((ParquetPart(path, (0,)),), ["ts", "v"], 0))
    assert max(batch.nbytes for batch in found) < 2 * BATCH_BYTES
    assert pa.Table.from_batches(found).equals(rows)
    assert len(list(read((ParquetPart(path, (0,)),), ["ts"], 0))) == 1


def test_files_without_rows_are_no_trouble(spark: Any, tmp_path: Path) -> None:
    query = chain()
    tables = {name: table(2, n) for name, n in zip("abc", (0, 60, 60), strict=True)}
    given = {name: spark.createDataFrame(rows) for name, rows in tables.items()}
    given["a"].write.parquet(str(tmp_path / "none"))
    given["a"] = spark.read.parquet(str(tmp_path / "none"))
    assert FrameSource(given["a"], 2, direct=True).rows == 0
    for strategy in ("single", "atr"):
        assert wjs.join(query, given, hosts=2, strategy=strategy).count() == 0


def unsteady(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of a partition in another order each time."""
    import random

    for batch in list(batches):
        yield batch.take(pa.array(random.SystemRandom().sample(range(len(batch)), len(batch))))


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp", "groups"])
def test_rows_in_another_order_each_time_are_told_apart(spark: Any, strategy: str) -> None:
    rows = pa.table({"ts": [*range(40), *range(40)], "k": [1, 2] * 40, "n": [*range(78), 1, 1]})
    frame = spark.createDataFrame(rows).withColumn("m", F.create_map(F.lit("n"), F.col("n")))
    frame = frame.repartition(2).mapInArrow(unsteady, frame.schema)
    a, b, c = (wj.stream(name, time="ts", window=2) for name in "abc")
    on = [a["k"] == b["k"], b["k"] == c["k"]]
    columns = [a["n"], b["n"], b["m"], c["n"]]
    query = wj.join(a, b, c, on=on, select=columns, exclude_self=True)
    plain = wj.join(a, b, c, on=on, select=[a["n"], b["n"], c["n"]], exclude_self=True)
    found = wjs.join(query, dict.fromkeys("abc", frame), hosts=3, strategy=strategy)
    expected = rows_of(plain.run(dict.fromkeys("abc", rows)))
    assert rows_of(found.drop("b_m")) == expected


def test_few_rows_of_files_are_shared_out_as_their_times_are_at_hand(
    spark: Any, tmp_path: Path
) -> None:
    a, b = (wj.stream(name, time="ts", window=3) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], select=[a["n"], b["n"].alias("m")])
    tables = {name: table(seed, 20_000) for seed, name in enumerate("ab")}
    given = {}
    for name, rows in tables.items():
        (tmp_path / name).mkdir()
        given[name] = spark.read.parquet(written(tmp_path / name, rows))
    found = wjs.join(query, given, hosts=16)
    assert "strategy: atr" in wjs.explain(query)
    assert "why: 40000 rows in files" in wjs.explain(query)
    assert rows_of(found) == rows_of(query.run(tables))
    assert len(wjs.measured(query)) == 4
    long = wj.join(*(wj.stream(name, time="ts", window=10**6) for name in "ab"), on=query.on)
    assert "strategy: single" in wjs.explain(long, given, hosts=16)


@pytest.mark.usefixtures("exchanged")
def test_vectors_are_read_from_files_and_joined(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    flat = pa.array(rng.integers(0, 4, 3 * 500).astype(np.float32))
    rows = pa.table({"ts": np.arange(500), "v": pa.FixedSizeListArray.from_arrays(flat, 3)})
    frame = spark.read.parquet(written(tmp_path, rows))
    a, b = (wj.stream(name, time="ts", window=30) for name in "ab")
    near = wj.l2(a["v"], b["v"]) <= 1.5
    query = wj.join(a, b, on=near, select=[a["ts"].alias("p"), b["ts"].alias("q")])
    found = wjs.join(query, {"a": frame, "b": frame}, hosts=2, strategy="atr")
    assert "read by tasks from Parquet files: a, b" in wjs.explain(query)
    assert rows_of(found) == rows_of(query.run({"a": rows, "b": rows}))
    assert "windjoin_pack_a_b" in found._jdf.queryExecution().toString()


def left_alone(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many objects the worker's search for garbage passes over."""
    import gc

    assert list(batches)
    yield pa.RecordBatch.from_pydict({"n": [gc.get_freeze_count()]})


def test_workers_do_not_search_modules_for_garbage(spark: Any) -> None:
    frame = spark.createDataFrame(table(3, 40))
    query = chain()
    wjs.join(query, dict.fromkeys("abc", frame), hosts=2, strategy="atr").count()
    counted = spark.range(0, 2, 1, 2).mapInArrow(left_alone, "n long").collect()
    assert max(row.n for row in counted) > 10_000
