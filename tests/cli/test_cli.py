"""The command as users run it: a process of its own, its output, its exit code."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
import windjoin as wj
from pyarrow import feather, parquet
from windjoin import pairs
from windjoin.cli.conditions import functions
from windjoin.cli.files import _WRITERS, write_table
from windjoin.cli.main import COMMANDS, main

from tests.command import COMMAND, QUERY, STREAM, TWO_STREAMS, query_file, refusal, windjoin

ROOT = Path(__file__).parents[2]


# -- run -------------------------------------------------------------------------------------------


def test_run_shows_the_first_rows_and_the_counters(folder: Path) -> None:
    done = windjoin("run", folder / "query.toml", "--rows", 1)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"2 results from 6 rows in \d+\.\d\d s: [\d,]+ rows/s", lines[0])
    assert lines[1].startswith("rows_in 6, results 2, rejected 0, comparisons ")
    assert lines[-3:] == [
        "a_t | a_k | a_x | b_t | b_k | b_y",
        "1   | u   | 1.5 | 5   | u   | 10",
        "... 1 more row",
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv"])
def test_run_writes_what_the_suffix_names(folder: Path, suffix: str) -> None:
    output = folder / f"out{suffix}"
    done = windjoin("run", folder / "query.toml", "--output", output, "--threads", 2)
    assert done.returncode == 0, done.stderr
    assert f"written to {output}" in done.stdout
    if suffix == ".csv":
        rows = output.read_text().splitlines()[1:]
        assert sorted(rows) == ['1,"u",1.5,5,"u",10', '2,"v",2.5,6,"v",20']
        return
    table = (parquet.read_table if suffix in (".parquet", ".pq") else feather.read_table)(output)
    assert sorted(table.column("a_k").to_pylist()) == ["u", "v"]
    left = {"a.csv", "b.csv", "query.toml", output.name}
    assert {path.name for path in folder.iterdir()} == left


def test_run_understands_every_key(folder: Path) -> None:
    text = """\
    on = ['a["x"] < b["y"]', '(b["y"] - a["x"] * 2).between(0, 25)']
    select = ['a["x"]', '(b["y"] + 1).alias("next")']
    closed = "right"
    cross = false
    exclude_self = ["a", "b"]
    ordered = true
    threads = 1
    output = "kept.parquet"
    [streams.a]
    path = "a.csv"
    time = "t"
    window = "10s"
    unit = "s"
    where = 'a["x"] > 0'
    [streams.b]
    path = "b.csv"
    time = "t"
    window = 10
    unit = "s"
    """
    done = windjoin("run", query_file(folder, text))
    assert done.returncode == 0, done.stderr
    kept = parquet.read_table(folder / "kept.parquet")
    found = [(row["a_x"], row["next"]) for row in kept.to_pylist()]
    assert found == [(2.5, 11), (1.5, 21), (2.5, 31)]  # but no row with itself


def test_the_example_of_the_documentation_gives_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / "cli.md").read_text(), re.DOTALL)
    assert [kind for kind, _ in blocks] == ["toml", "csv", "json", "csv", "csv"]
    names = ("query.toml", "calls.csv", "trades.jsonl", "news.csv")
    for name, (_, text) in zip(names, blocks, strict=False):
        (tmp_path / name).write_text(text)
    done = windjoin("run", tmp_path / "query.toml")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results.csv").read_text() == blocks[-1][1]


def test_the_documentation_names_every_function_and_suffix() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    built_in = [name for name in functions() if name not in pairs.known()]
    assert [name for name in built_in if f"{name}(" not in text] == []
    assert [suffix for suffix in _WRITERS if f"`{suffix}`" not in text] == []


WRONG_FILES = [
    ("on = [", "is not TOML: "),
    ("", "there are no streams; describe each in a table such as [streams.calls]"),
    ("streams = 5", "there are no streams; describe each in a table such as [streams.calls]"),
    ("streams.a = 5", "there are no streams; describe each in a table such as [streams.calls]"),
    ("onn = ''\n" + TWO_STREAMS, "the file has the unknown key 'onn'; did you mean 'on'?"),
    (TWO_STREAMS + "pth = 'x'", "[streams.b]: [streams.b] has the unknown key 'pth'; did you mean"),
    (STREAM.format("a") + "[streams.b]\ntime = 't'", "[streams.b]: path is missing"),
    (TWO_STREAMS + "where = 5", "[streams.b]: where = 5: expected a text"),
    ("ordered = 1\n" + QUERY, "ordered = 1: expected true or false"),
    ("threads = '2'\n" + QUERY, "threads = '2': expected a whole number"),
    ("threads = 0\n" + QUERY, "threads=0: give a number of threads, 1 or more, or None"),
    ("on = 5\n" + TWO_STREAMS, "on = 5: expected a list of texts"),
    ("on = [5]\n" + TWO_STREAMS, "on = [5]: expected a list of texts"),
    ("exclude_self = 'a'\n" + QUERY, "exclude_self = 'a': give true, or a list of the streams"),
    ("on = 'a[0]'\n" + TWO_STREAMS, "on: `a[0]`: `a[0]` does not name a column"),
    ("select = 'q[\"k\"]'\n" + QUERY, "select: `q[\"k\"]`: 'q' is not a stream of this query"),
    (TWO_STREAMS + "where = 'a[\"k\"] == 1'", "[streams.b]: where: `a[\"k\"] == 1`: 'a' is not a"),
    (TWO_STREAMS, "no condition connects 'a' with 'b': that is a cross product"),
    (QUERY.replace("10", "'-5s'", 1), "[streams.a]: stream 'a': window='-5s' is negative"),
    ("closed = 'left'\n" + QUERY, 'closed=\'left\': a window is closed="both" or closed="right"'),
    (QUERY.replace("a.csv", "c.csv"), "stream 'a': there is no file"),
    (QUERY.replace('a["k"]', 'a["kk"]'), "'kk'"),
    ("output = 'x.doc'\n" + QUERY, "has no suffix that says how to write it; known are .parquet"),
    ("output = 'no/x.csv'\n" + QUERY, "there is no folder"),
]


@pytest.mark.parametrize(("text", "message"), WRONG_FILES, ids=range(len(WRONG_FILES)))
def test_wrong_query_files_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    assert main(["run", str(query_file(folder, text))]) == 1
    said = capsys.readouterr().err
    assert said.startswith("windjoin: ")
    assert said.count("\n") == 1
    assert message in said


def test_a_missing_query_file_is_one_line(tmp_path: Path) -> None:
    assert refusal("run", tmp_path / "q.toml") == (
        f"{tmp_path}/q.toml: cannot be read: No such file or directory"
    )


def test_a_broken_input_file_is_one_line(folder: Path) -> None:
    (folder / "a.csv").write_bytes(b"t,k\n1,2,3\n")
    assert "stream 'a': " in refusal("run", folder / "query.toml")


def test_an_output_that_cannot_be_written_leaves_nothing_behind(folder: Path) -> None:
    (folder / "out.csv").mkdir()
    said = refusal("run", folder / "query.toml", "--output", folder / "out.csv")
    assert said == f"output '{folder}/out.csv' is a folder; give a file in it"
    nested = pa.table({"x": pa.array([[1]])})
    with pytest.raises(wj.InputError, match="cannot be written: Unsupported Type"):
        write_table(nested, folder / "nested.csv")
    assert sorted(path.name for path in folder.iterdir()) == [
        "a.csv", "b.csv", "out.csv", "query.toml",
    ]  # fmt: skip


def test_no_memory_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, said in (
        (MemoryError("no memory for 5 rows"), "not enough memory: no memory for 5 rows"),
        (MemoryError(), "not enough memory"),
    ):
        monkeypatch.setattr("windjoin.cli.run.read_tables", Mock(side_effect=error))
        assert main(["run", str(folder / "query.toml")]) == 1
        assert capsys.readouterr().err == f"windjoin: {said}\n"


# -- how it is called and how it ends --------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("walk",), "invalid choice: 'walk'"),
        (("run",), "the following arguments are required: QUERY.toml"),
        (("run", "q", "--threads", "0"), "argument --threads: 0 is less than 1"),
        (("run", "q", "--threads", "two"), "argument --threads: invalid whole value: 'two'"),
    ],
)
def test_a_wrong_command_line_says_so(arguments: tuple[str, ...], said: str) -> None:
    done = windjoin(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_version_and_help() -> None:
    assert windjoin("--version").stdout == f"windjoin {version('windjoin')}\n"
    shown = windjoin("--help").stdout
    assert all(f"    {name}" in shown for name in COMMANDS)


def test_ctrl_c_ends_cleanly() -> None:
    with subprocess.Popen(
        [*COMMAND, "demo", "--rows", "5_000_000", "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # background jobs lack it
    ) as running:
        assert running.stdout is not None
        while running.stdout.readline() != "joining\n":
            assert running.poll() is None
        time.sleep(0.3)  # the kernels are at work
        running.send_signal(signal.SIGINT)
        shown, said = running.communicate(timeout=60)
    assert (shown, said) == ("", "windjoin: stopped\n")
    assert running.returncode in (130, -signal.SIGINT)  # 130 for a shell, either way


def test_nobody_reads_any_more(folder: Path) -> None:
    rows = "".join(f"{t},u,1\n" for t in range(3000))
    (folder / "a.csv").write_text("t,k,x\n" + rows)
    (folder / "b.csv").write_text("t,k,y\n" + rows)
    command = [*COMMAND, "run", str(folder / "query.toml"), "--rows", "50000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


def test_progress_is_shown_where_it_is_asked_for(folder: Path) -> None:
    def shown(*options: str) -> str:
        done = windjoin("run", folder / "query.toml", *options, FORCE_COLOR="1", TERM="xterm")
        assert done.returncode == 0
        return done.stderr

    assert "joining" in shown("--progress")
    assert shown() == ""


# -- explain ---------------------------------------------------------------------------------------


def test_explain_shows_the_plan_of_a_run_without_the_run(folder: Path) -> None:
    done = windjoin("explain", folder / "query.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "windowed join of 2 streams, closed='both'" in done.stdout
    assert '  a["k"] == b["k"]' in done.stdout
    assert "measured" not in done.stdout
    measured = windjoin("explain", folder / "query.toml", "--run").stdout
    plan = [line for line in done.stdout.splitlines() if line.strip().startswith(("order", "1."))]
    assert plan
    assert set(plan) <= set(measured.splitlines())
    assert "measured" in measured


def test_explain_for_programs_is_json(folder: Path) -> None:
    plan = json.loads(windjoin("explain", folder / "query.toml", "--json").stdout)
    assert [stream["name"] for stream in plan["streams"]] == ["a", "b"]
    assert plan["on"] == ['a["k"] == b["k"]']
    assert len(plan["order"]["steps"]) == 1
    run = json.loads(windjoin("explain", folder / "query.toml", "--json", "--run").stdout)
    assert run["metrics"]["results"] == 2
    assert run["order"]["steps"][0].pop("measured")["kept"] == 2
    assert run["order"] == plan["order"]


def test_explain_refuses_what_run_refuses(folder: Path) -> None:
    (folder / "a.csv").unlink()
    assert "stream 'a': there is no file" in refusal("explain", folder / "query.toml")
