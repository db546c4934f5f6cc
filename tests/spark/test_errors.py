"""What users are told when a join on Spark cannot be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs

from tests.spark import MARKS

pytestmark = MARKS


def pair(**options: Any) -> wj.Query:
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"], **options)


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.createDataFrame(pa.table({"ts": [1, 2], "k": [1, 1]}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": 0}, "hosts=0: give a number of hosts, 1 or more, or None"),
        ({"strategy": "fast"}, "strategy='fast': there are 'auto', 'atr', 'ctr', 'psp', 'groups'"),
        ({"skew": "no"}, "skew='no': it is 'spread' or 'ignore'"),
        ({"segment": "10s"}, "segment='10s': the times of this query need an integer"),
        ({"segment": 0}, "segment=0 is shorter than a tick"),
    ],
)
def test_join_refuses_options(frame: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(wj.QueryError, match=message):
        wjs.join(pair(), {"a": frame, "b": frame}, **options)


def test_join_refuses_frames(spark: Any, frame: Any) -> None:
    with pytest.raises(wj.QueryError, match=r"frames is a list; give a dictionary with a Data"):
        wjs.join(pair(), [frame, frame])  # type: ignore[arg-type]
    with pytest.raises(wj.SchemaError, match=r"no DataFrame for stream 'b'; every stream needs"):
        wjs.join(pair(), {"a": frame})
    with pytest.raises(wj.SchemaError, match=r"'c' is not a stream of this query"):
        wjs.join(pair(), {"a": frame, "b": frame, "c": frame})
    with pytest.raises(wj.InputError, match=r"stream 'b': Table is not a Spark DataFrame"):
        wjs.join(pair(), {"a": frame, "b": pa.table({"ts": [1]})})
    rate = spark.readStream.format("rate").load()
    with pytest.raises(wj.InputError, match=r"stream 'b' is a streaming DataFrame"):
        wjs.join(pair(), {"a": frame, "b": rate})
    doubled = frame.join(frame.alias("again"), "ts")
    with pytest.raises(wj.SchemaError, match=r"stream 'b' has several columns called 'k'"):
        wjs.join(pair(), {"a": frame, "b": doubled})
    with pytest.raises(wj.QueryError, match=r"'a' and 'b' are one table, but they are two"):
        wjs.join(pair(exclude_self=True), {"a": frame, "b": frame.select("*")})
    named = frame.withColumnRenamed("k", "windjoin_row")
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    with pytest.raises(wj.SchemaError, match=r"column 'windjoin_row' is a name that windjoin"):
        wjs.join(wj.join(a, b, cross=True), {"a": named, "b": named}, hosts=2)


def test_groups_needs_a_key_of_all_streams(frame: Any) -> None:
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] < b["k"])
    with pytest.raises(wj.QueryError, match=r"no key is equal in all streams of this query"):
        wjs.join(query, {"a": frame, "b": frame}, hosts=2, strategy="groups")


def test_segments_may_not_be_too_many(spark: Any) -> None:
    far = spark.createDataFrame(pa.table({"ts": [0, 10**12], "k": [1, 1]}))
    with pytest.raises(wj.QueryError, match=r"segment of 1 ticks cuts .* ticks into .* segments"):
        wjs.join(pair(), {"a": far, "b": far}, hosts=2, strategy="atr", segment=1)


def test_errors_of_hosts_say_where(spark: Any) -> None:
    values = pa.table({"ts": [1, 2], "k": [1, 1], "z": [2**62, 2**62]})
    frame = spark.createDataFrame(values)
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"], select=[(a["z"] + b["z"]).alias("sum")])
    found = wjs.join(query, {"a": frame, "b": frame}, hosts=2, strategy="atr")
    with pytest.raises(Exception, match=r"does not fit int64.*\(on host \d, last segment\)"):
        found.collect()


def too_large(x: float, y: float) -> bool:
    if x > 0.9:
        raise ValueError("too large")
    return abs(x - y) <= 0.5


@pytest.mark.parametrize("strategy", ["atr", "ctr", "auto"])
def test_a_function_that_raises_ends_the_job(spark: Any, strategy: str) -> None:
    a, b, c = (wj.stream(name, time="ts", window=5) for name in "abc")
    on = [wj.udf(too_large, a["x"], b["x"]), b["k"] == c["k"]]
    query = wj.join(a, b, c, on=on, select=[a["ts"], b["ts"], c["ts"]])
    tables = {
        "a": pa.table({"ts": [1, 2, 3], "k": [1, 1, 1], "x": [0.5, 0.95, 0.7]}),
        "b": pa.table({"ts": [2, 900, 4], "k": [2, 1, 3], "x": [0.6, 0.6, 0.6]}),
        "c": pa.table({"ts": [3, 4, 5], "k": [1, 1, 1], "x": [0.1, 0.1, 0.1]}),
    }
    frames = {name: spark.createDataFrame(table) for name, table in tables.items()}
    found = wjs.join(query, frames, hosts=2, strategy=strategy)  # type: ignore[arg-type]
    assert found.count() == 0  # of partial results that raise none is completed
    tables["c"] = pa.table({"ts": [3, 4], "k": [2, 2], "x": [0.1, 0.1]})
    frames["c"] = spark.createDataFrame(tables["c"])
    found = wjs.join(query, frames, hosts=2, strategy=strategy)  # type: ignore[arg-type]
    said = r"FunctionError: stream 'a', row of ts 2, with stream 'b', row of ts 2: "
    said += r"`udf\(too_large, a\[\"x\"\], b\[\"x\"\]\)`: too_large\(0.95, 0.6\) raised"
    said += r" ValueError: too large \(File \".*test_errors.py\", line \d+\)"
    with pytest.raises(Exception, match=said):
        found.collect()
    query.run({name: table.slice(0, 1) for name, table in tables.items()})
    with pytest.raises(wj.FunctionError, match="stream 'a', row 1, with stream 'b', row 0: "):
        query.run(tables)


def test_explain_says_what_and_why(spark: Any, frame: Any) -> None:
    query = pair()
    assert wjs.explain(query) == "nothing planned yet: give the frames, or join them first"
    frames = {"a": frame, "b": frame}
    text = wjs.explain(query, frames, hosts=2, strategy="atr")
    assert "strategy: atr" in text
    assert "measured: nothing yet" in text
    assert wjs.measured(query) == []
    wjs.join(query, frames, hosts=2, strategy="atr").collect()
    text = wjs.explain(query)
    assert "measured: 4 rows, 0 rejected (no time)" in text
    arrived = sum(host["rows"] for host in wjs.measured(query))
    assert f"exchange 1: {arrived} rows in " in text
    assert "imbalance in rows" in text
    assert "not worth an exchange" in wjs.explain(query, frames, hosts=2)
    assert "setting missing" not in text
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    assert "setting missing: spark.sql.execution.arrow.maxRecordsPerBatch" in wjs.explain(query)
    wjs.configure(spark)
    assert wjs.missing(spark) == []
