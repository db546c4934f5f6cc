"""Whole tables and files joined in stretches of time give what they give at once."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windjoin as wj
from hypothesis import given, settings
from hypothesis import strategies as st
from windjoin.cli.main import main

from tests.api import build, table_rows
from tests.cases import Case
from tests.compare import assert_same_results
from tests.effort import examples
from tests.oracle import join
from tests.strategies import cases


@settings(max_examples=examples(30))
@given(case=cases(most=3), memory=st.sampled_from([None, 1]))
def test_streamed_tables_equal_the_oracle(case: Case, memory: Any) -> None:
    query = build(case)
    found: list[tuple[int, ...]] = []
    for batch in query.stream(case.tables(), memory=memory):
        found += table_rows(case.names, pa.Table.from_batches([batch]))
    assert_same_results(found, join(case.query, case.rows()))


def table(seed: int, kind: Any, count: int = 600, disorder: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    time = np.arange(count) // 2 + random.integers(0, disorder + 1, count)
    key = random.integers(0, 12, count)
    return pa.table({"t": pa.array(time, pa.int64()).cast(kind), "k": key, "n": np.arange(count)})


@pytest.mark.parametrize("disorder", [0, 7, 1000])
@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("s"), pa.timestamp("us")])
@pytest.mark.parametrize("memory", [None, 1])
def test_parquet_files_are_read_row_group_by_row_group(
    disorder: int, kind: Any, memory: Any, tmp_path: Path
) -> None:
    unit = {"s": 1, "us": 1_000_000}.get(getattr(kind, "unit", ""), 0)
    window = datetime.timedelta(seconds=20 / unit) if unit else 20
    a, b = (wj.stream(name, time="t", window=window) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    tables = {n: table(seed, kind, disorder=disorder) for seed, n in enumerate("ab")}
    paths = {}
    for name, rows in tables.items():
        paths[name] = tmp_path / f"{name}.parquet"
        pq.write_table(rows, paths[name], row_group_size=37)
    expected = Counter(map(str, query.run(tables).to_pylist()))
    found = [row for b in query.stream(paths, memory=memory) for row in b.to_pylist()]
    assert Counter(map(str, found)) == expected
    output = query.run(paths, memory=memory, output=tmp_path / "out.parquet")
    assert output == tmp_path / "out.parquet"
    assert Counter(map(str, pq.read_table(output).to_pylist())) == expected
    assert Counter(map(str, query.run(paths, memory="1GB").to_pylist())) == expected


@pytest.mark.parametrize("memory", [None, "64MB"])
def test_columns_that_only_selected_measures_ask_for_are_read(memory: Any, tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    score = wj.overlap(a["tags"], b["tags"]).alias("common")
    query = wj.join(a, b, on=a["k"] == b["k"], select=[a["k"], score])
    rows = pa.table({"t": [1, 2], "k": [3, 4], "tags": [["x", "y"], ["z"]], "other": [0, 0]})
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path)
    for source in (rows, path):
        batches = list(query.stream({"a": source, "b": source}, memory=memory))
        found = [row for batch in batches for row in batch.to_pylist()]
        assert found == [{"a_k": 3, "common": 2}, {"a_k": 4, "common": 1}]


def test_folders_and_rows_without_times(tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    (tmp_path / "a").mkdir()
    pq.write_table(pa.table({"t": [5, None, 3], "k": [1, 1, 2]}), tmp_path / "a" / "1.parquet")
    pq.write_table(pa.table({"t": [None, 1], "k": [1, 1]}), tmp_path / "a" / "2.parquet")
    rows = {"t": [4], "k": [1]}
    found = list(query.stream({"a": tmp_path / "a", "b": rows}))
    assert sorted(row["a_t"] for b in found for row in b.to_pylist()) == [1, 5]


def test_a_session_is_as_small_as_the_windows(tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=3) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    for name in "ab":
        pq.write_table(table(1, pa.int64(), 200_000), tmp_path / f"{name}.parquet",
                       row_group_size=5_000)  # fmt: skip
    paths = {name: str(tmp_path / f"{name}.parquet") for name in "ab"}
    assert sum(b.num_rows for b in query.stream(paths)) > 200_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q, t: q.stream({"a": t}), "give a dictionary with a table for each of a, b"),
        (lambda q, t: q.stream({"a": t, "b": t}, memory="x"), "memory='x': give bytes"),
        (lambda q, t: q.run({"a": t, "b": t}, memory=1, hosts=2), "hosts=2 is not for memory="),
        (
            lambda q, t: q.run({"a": t, "b": t}, output="x.txt"),
            "output 'x.txt': results are written as they come to a file whose suffix says how: .pa",
        ),
        (
            lambda q, t: q.run({"a": t, "b": t}, output="nowhere/x.parquet"),
            "output 'nowhere/x.parquet' cannot be written",
        ),
    ],
)
def test_what_cannot_be_is_refused(call: Any, message: str) -> None:
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    with pytest.raises(wj.WindjoinError) as caught:
        call(wj.join(a, b, on=a["k"] == b["k"]), {"t": [1], "k": [1]})
    assert message in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=9) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(wj.InputError, match=r"stream 'a': '.*x.parquet' cannot be read as a"):
        query.stream({"a": tmp_path / "x.parquet", "b": {"t": [1], "k": [1]}})
    (tmp_path / "empty").mkdir()
    with pytest.raises(wj.InputError, match=r"there is no Parquet file in '.*empty'"):
        query.stream({"a": tmp_path / "empty", "b": {"t": [1], "k": [1]}})


def test_the_command_takes_memory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "out.parquet"
    assert main(["run", str(folder / "query.toml"), "--output", str(out)]) == 0
    whole = pq.read_table(out)
    query = folder / "query.toml"
    query.write_text(f'memory = "1MB"\nspill = "disk"\n{query.read_text()}')
    assert main(["run", str(query), "--output", str(out), "--no-progress"]) == 0
    assert (
        pq.read_table(out)
        .sort_by([(n, "ascending") for n in whole.column_names])
        .equals(whole.sort_by([(n, "ascending") for n in whole.column_names]))
    )
    assert "joined within 1MB: 2 results from 6 rows in" in capsys.readouterr().out
    assert main(["run", str(query), "--memory", "2 elephants"]) == 1


def test_a_run_in_stretches_of_time_leaves_its_counters(tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    tables = {
        "a": {"t": [1, 2, None, 90], "k": [1, 2, 1, None]},
        "b": {"t": [3, None], "k": [1, 1]},
    }
    runs = [
        lambda: list(query.stream(tables)),
        lambda: query.run(tables, memory="1GB"),
        lambda: query.run(tables, output=tmp_path / "out.csv"),
    ]
    for run in runs:
        query.run({name: {"t": [1], "k": [1]} for name in "ab"})
        run()
        metrics = query.metrics
        assert (metrics["rows_in"], metrics["results"], metrics["rejected"]) == (6, 1, 2)
        assert metrics["streams"]["a"] == {"rows_in": 4, "joinable": 2, "rejected": 1}
        assert metrics["streams"]["b"] == {"rows_in": 2, "joinable": 1, "rejected": 1}
        assert query.rejected == {}
        assert "hash" in query.explain()
        assert query.explain("json")["orders"]
    query.run({name: {"t": [1], "k": [1]} for name in "ab"})
    assert query.metrics["rows_in"] == 2


def test_rows_that_statistics_exclude_are_told_apart(tmp_path: Path) -> None:
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    rows = pa.table({"t": list(range(100)), "k": [1] * 100})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=10)
    pq.write_table(rows.slice(50, 1), tmp_path / "b.parquet")
    query.run({n: tmp_path / f"{n}.parquet" for n in "ab"}, output=tmp_path / "out.csv")
    metrics = query.metrics
    assert metrics["unread"] > 0
    assert metrics["unread"] + metrics["rows_in"] == 101


@pytest.mark.parametrize("before", ["ordered = true\n", "", "memory = '1GB'\n"])
@pytest.mark.parametrize("options", [[], ["--watch"]])
def test_the_command_writes_results_alone_to_standard_output(
    before: str, options: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = folder / "query.toml"
    file.write_text(before + file.read_text())
    if options and before.startswith("memory"):
        options = []
    assert main(["run", str(file), "--output", "-", *options]) == 0
    said = capfd.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == '"a_t","a_k","a_x","b_t","b_k","b_y"'
    assert sorted(lines[1:]) == ['1,"u",1.5,5,"u",10', '2,"v",2.5,6,"v",20']
    assert "written to standard output" in said.err
    assert options or "rows_in 6, results 2, rejected 0" in said.err


def test_a_session_that_sheds_writes_to_standard_output_too(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = folder / "query.toml"
    file.write_text(f"{file.read_text()}\n[shed]\nbudget = 0.9\n")
    assert main(["run", str(file), "--output", "-"]) == 0
    said = capfd.readouterr()
    assert len(said.out.splitlines()) == 3
    assert "2 results from 6 rows" in said.err


def _session_options(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What sessions are opened with from now on."""
    asked: list[dict[str, Any]] = []
    opened = wj.Query.open

    def open_it(self: wj.Query, *given: Any, **options: Any) -> Any:
        asked.append(options)
        return opened(self, *given, **options)

    monkeypatch.setattr(wj.Query, "open", open_it)
    return asked


def test_a_query_file_says_all_of_memory(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, asked = folder / "query.toml", _session_options(monkeypatch)
    table = """
[memory]
limit = "3MB"
spill = "disk"
share = 0.5
idle = 1
choose = "largest"
groups = 7
disk_limit = "1GB"
"""
    query.write_text(f'on_full = "spill"\n{query.read_text()}{table}')
    out = folder / "out.parquet"
    assert main(["run", str(query), "--output", str(out)]) == 0
    wanted = wj.Memory(
        "3MB", folder / "disk", 0.5, idle=1, choose="largest", groups=7, disk_limit="1GB"
    )
    assert asked[-1]["memory"] == wanted
    assert "joined within 3MB: " in capsys.readouterr().out
    options = "--memory 4MB --share 0.25 --choose random --groups 9 --idle 2 --disk-limit 2GB"
    assert main(["run", str(query), "--output", str(out), *options.split()]) == 0
    wanted = wj.Memory(
        "4MB", folder / "disk", 0.25, idle=2, choose="random", groups=9, disk_limit="2GB"
    )
    assert asked[-1]["memory"] == wanted
    assert main(["run", str(query), "--on-full", "error", "--output", str(out)]) == 0
    assert asked[-1]["on_full"] == "error"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", "--share 0.5", "--share needs --memory, or memory in the query file"),
        ("", "--on-full shed", "on_full='shed' needs memory="),
        ('on_full = "sched"\nmemory = "1MB"\n', "", "on_full='sched'; did you mean 'shed'?"),
        ("memory = {share = 0.5}\n", "", "[memory]: limit is missing"),
        ('memory = {limit = "1MB", grups = 3}\n', "", "[memory] has the unknown key 'grups'"),
        ('memory = {limit = "1MB", share = 3}\n', "", "[memory]: share=3: give a part of"),
        ("memory = true\n", "", "memory=True: give bytes"),
    ],
)
def test_what_is_wrong_about_memory_is_told(
    text: str, options: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = folder / "query.toml"
    query.write_text(f"{text}{query.read_text()}")
    given = ["run", str(query), "--output", str(folder / "out.parquet"), *options.split()]
    assert main(given) == 1
    assert message in capsys.readouterr().err
