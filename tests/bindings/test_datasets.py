"""Files, patterns, folders, partitions, URIs, datasets, lazy frames and relations as inputs."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.inputs import as_table
from windjoin.streamed import Streamed

from tests.effort import examples

N = 400


def rows(seed: int, shuffled: bool = False) -> pa.Table:
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "t": np.arange(N) // 2,
            "k": random.integers(0, 12, N),
            "s": random.integers(0, 99, N).astype(str),
            "p": np.arange(N) * 3 // N,
            "wide": random.random((N,)),
        }
    )
    return table.take(pa.array(random.permutation(N))) if shuffled else table


def query() -> Any:
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"], select=[a["t"], a["s"], b["t"], b["p"]])


def counted(found: Any) -> Any:
    return Counter(map(str, found.to_pylist()))


def streamed(q: Any, tables: Any, **options: Any) -> Any:
    batches = q.stream(tables, **options)
    return sum((counted(batch) for batch in batches), Counter())


def in_files(kind: str, table: pa.Table, folder: Path) -> Any:
    """The table as an input of some kind."""
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=37)
    elif kind in ("arrow", "feather"):
        pa.feather.write_feather(table, str(path))
    elif kind == "arrows":
        with pa.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)
    elif kind == "csv":
        pa.csv.write_csv(table, path)
    elif kind == "csv.gz":
        pa.csv.write_csv(table, folder / "rows.csv")
        path.write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    elif kind == "jsonl":
        pl.from_arrow(table).write_ndjson(path)  # type: ignore[union-attr]
    elif kind == "pattern":
        for n in range(3):
            pq.write_table(table.slice(n * 150, 150), folder / f"part-{n}.parquet")
        return str(folder / "part-*.parquet")
    elif kind == "partitions":
        ds.write_dataset(
            table, folder / "hive", format="parquet",
            partitioning=ds.partitioning(pa.schema([("p", pa.int64())]), flavor="hive"),
        )  # fmt: skip
        return folder / "hive"
    elif kind == "uri":
        pq.write_table(table, folder / "uri.parquet")
        return (folder / "uri.parquet").as_uri()
    elif kind == "dataset":
        return ds.dataset(table)
    elif kind == "lazy":
        return pl.from_arrow(table).lazy()  # type: ignore[union-attr]
    elif kind == "relation":
        return duckdb.from_arrow(table)
    return path


KINDS = [
    "parquet", "arrow", "feather", "arrows", "csv", "csv.gz", "jsonl", "pattern", "partitions",
    "uri", "dataset", "lazy", "relation",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_is_joined(kind: str, tmp_path: Path) -> None:
    q, tables = query(), {name: rows(seed) for seed, name in enumerate("ab")}
    expected = counted(q.run(tables))
    given_tables = {"a": tables["a"], "b": in_files(kind, tables["b"], tmp_path)}
    assert counted(q.run(given_tables)) == expected
    assert streamed(q, given_tables) == expected
    if kind != "relation":
        assert as_table(given_tables["b"], "b").num_rows == N


@pytest.mark.parametrize("kind", ["parquet", "csv", "lazy"])
def test_rows_out_of_order_are_sorted_within_memory_or_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windjoin.datasets.BATCH_ROWS", 1000)
    q, tables = query(), {name: rows(seed, shuffled=True) for seed, name in enumerate("ab")}
    expected = counted(q.run(tables))
    big = pa.concat_tables([tables["b"]] * 60).take(pa.array(np.arange(N * 60)[::-1].copy()))
    given_tables = {"a": tables["a"], "b": in_files(kind, big, tmp_path)}
    found = streamed(q, given_tables, memory="1MB", spill=tmp_path / "spill")
    assert found == Counter({one: 60 * times for one, times in expected.items()})
    assert not list((tmp_path / "spill").glob("windjoin-sort-*"))
    if kind != "parquet":
        with pytest.raises(wj.InputError, match=r"stream 'b': row \d+ is before rows that were"):
            streamed(q, given_tables)


def test_only_columns_that_are_asked_for_are_read(tmp_path: Path) -> None:
    q, tables = query(), {name: rows(seed) for seed, name in enumerate("ab")}
    paths = {name: in_files("parquet", table, tmp_path / name) for name, table in tables.items()
             if (tmp_path / name).mkdir() is None}  # fmt: skip
    made = Streamed(q, paths)
    assert [source.schema.names for source in made.sources] == [["t", "k", "s"], ["t", "k", "p"]]
    q.run(paths)
    assert q.runs.last().bound.schemas["a"].names == ["t", "k", "s"]


@settings(max_examples=examples(15))
@given(
    low=st.integers(-5, 205),
    operator=st.sampled_from(["<", "<=", ">", ">=", "=="]),
    column=st.sampled_from(["t", "s", "wide"]),
    windows=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    some=st.tuples(st.integers(0, N), st.integers(0, N)),
)
def test_what_statistics_exclude_is_not_read_and_not_missed(
    low: int, operator: str, column: str, windows: Any, some: Any, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("pruned")
    limit: Any = {"t": low, "s": str(low), "wide": low / 200}[column]
    where = {
        "<": lambda one: one[column] < limit, "<=": lambda one: one[column] <= limit,
        ">": lambda one: one[column] > limit, ">=": lambda one: limit <= one[column],
        "==": lambda one: one[column] == limit,
    }[operator]  # fmt: skip
    a = wj.stream("a", time="t", window=windows[0], where=where)
    b = wj.stream("b", time="t", window=windows[1])
    q = wj.join(a, b, on=a["k"] == b["k"])
    first, last = sorted(some)
    tables = {"a": rows(0), "b": rows(1).slice(first, last - first)}
    paths = {}
    for name, table in tables.items():
        paths[name] = folder / f"{name}.parquet"
        pq.write_table(table, paths[name], row_group_size=20)
    assert streamed(q, paths) == counted(q.run(tables))


def test_row_groups_out_of_reach_are_not_read(tmp_path: Path) -> None:
    a = wj.stream("a", time="t", window="10s", where=lambda a: a["k"] < 5)
    b = wj.stream("b", time="t", window="10s")
    q = wj.join(a, b, on=a["k"] == b["k"])
    seconds = pa.array(np.arange(1000), pa.timestamp("s"))
    one = pa.table({"t": seconds, "k": np.arange(1000) // 10})
    pq.write_table(one, tmp_path / "a.parquet", row_group_size=10)
    pq.write_table(one.slice(20, 30), tmp_path / "b.parquet", row_group_size=10)
    made = Streamed(q, {name: tmp_path / f"{name}.parquet" for name in "ab"})
    assert [source.pruned for source in made.sources] == [960, 0]
    assert sum(batch.num_rows for batch in made.batches()) == 300


OUTPUTS = {
    ".parquet": pq.read_table, ".arrow": pa.feather.read_table, ".csv": pa.csv.read_csv,
    ".jsonl": lambda path: pa.Table.from_pylist(
        [json.loads(line) for line in path.read_text().splitlines()]
    ),
}  # fmt: skip


@pytest.mark.parametrize("suffix", OUTPUTS)
def test_results_are_written_in_any_format(suffix: str, tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    q = wj.join(a, b, on=a["k"] == b["k"], select=[a["s"], b["wide"], a["d"], b["k"]])
    texts = ["plain", 'quo"te', "back\\slash", "new\nline", "tab\tand\x01", "ümlaut", ""]
    tables = {
        name: pa.table(
            {
                "t": np.arange(7), "k": [1] * 7, "s": texts,
                "wide": [0.5, -1e300, 3.0, 1e-9, 2.0, 7.25, 0.1],
                "d": pa.array([0, 86400, None, 1, 2, 3, 4], pa.timestamp("s")),
            }
        )
        for name in "ab"
    }  # fmt: skip
    expected = q.run(tables)
    output = q.run(tables, output=tmp_path / f"out{suffix}")
    found = OUTPUTS[suffix](output)
    for name in ("a_s", "b_wide", "b_k"):
        pairs = (found.column(name).to_pylist(), expected.column(name).to_pylist())
        assert Counter(pairs[0]) == Counter(pairs[1])
    assert found.column("a_d").null_count == expected.column("a_d").null_count
    assert [path.name for path in tmp_path.iterdir()] == [f"out{suffix}"]


def test_the_command_reads_patterns_and_writes_to_a_pipe(tmp_path: Path) -> None:
    for seed, name in enumerate("ab"):
        (tmp_path / name).mkdir()
        in_files("pattern", rows(seed), tmp_path / name)
    uri = (tmp_path / "b").as_uri()
    (tmp_path / "query.toml").write_text(
        "on = \"a['k'] == b['k']\"\nselect = [\"a['t']\", \"b['s']\"]\n"
        '[streams.a]\npath = "a/part-*.parquet"\ntime = "t"\nwindow = 9\n'
        f'[streams.b]\npath = "{uri}"\ntime = "t"\nwindow = 9\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "windjoin", "run", str(tmp_path / "query.toml"), "--output", "-"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = query().run({name: rows(seed) for seed, name in enumerate("ab")})
    lines = done.stdout.splitlines()
    assert lines[0] == '"a_t","b_s"'
    assert len(lines) - 1 == len(expected)
    assert f"joined in stretches of time: {len(expected):,} results" in done.stderr


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.txt").write_text("")
    for given_path, said in (
        (str(tmp_path / "*.parquet"), "stream 'a': no file matches"),
        (f"file://{tmp_path}/none.parquet", "stream 'a': there is no file 'file://"),
        (tmp_path / "folder", "there is no Parquet file in .*, and no other that is known"),
        ("nosuch://bucket/x.parquet", "cannot be read as a table: "),
    ):
        with pytest.raises(wj.InputError, match=said):
            query().stream({"a": given_path, "b": rows(1)})


def test_progress_counts_rows_of_all_files(tmp_path: Path) -> None:
    path = in_files("parquet", rows(0), tmp_path)
    seen: list[tuple[int, int]] = []
    for _ in query().stream({"a": path, "b": path}, progress=lambda *told: seen.append(told)):
        pass
    assert seen[-1] == (2 * N, 2 * N)
