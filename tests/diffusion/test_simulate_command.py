"""``windjoin simulate``: tables, files and one-line errors."""

from __future__ import annotations

import argparse
import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from windjoin.cli import simulate

SMALL = """
seconds = 60
matches = 0.5
hosts = 2
strategies = ["single", "atr"]
[[streams]]
name = "a"
rate = 2
window_s = 10
[[streams]]
name = "b"
rate = 2
window_s = 10
"""


def command(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    simulate.add_parser(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["simulate", *map(str, arguments)])
    return int(parsed.run(parsed))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_it_prints_a_table_per_number_of_hosts(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert command(small, "--hosts", 2, "--hosts", 3) == 0
    said = capsys.readouterr().out
    assert said.count("results/s") == 2
    assert "2 hosts" in said
    assert "…" not in said
    assert said.count("single ") >= 4
    assert "3 hosts: choose single" in said


def test_it_prints_without_rich_too(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "rich")
    assert command(small, "--strategy", "psp") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["2", "hosts", "psp"]
    assert lines[1].split()[0] == "results/s"


def test_it_writes_figures_and_plots(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert command(small, "--json", tmp_path / "out.json", "--plots", tmp_path / "plots") == 0
    outcomes = json.loads((tmp_path / "out.json").read_text())
    assert [each["strategy"] for each in outcomes] == ["single", "atr"]
    assert len(outcomes[0]["series"]["throughput"]) == 12
    assert (tmp_path / "plots" / "throughput.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["{small}", "--hosts", "0"], "--hosts is 0; it must be at least 1"),
        (["{small}", "--strategy", "hash"], "there is no strategy 'hash'"),
        (["none.toml"], "none.toml: there is no such file"),
        (["{small}", "--json", "none/out.json"], "No such file or directory: 'none/out.json'"),
    ],
)
def test_errors_are_one_line_and_a_status(
    small: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert command(*(each.format(small=small) for each in arguments)) == 2
    said = capsys.readouterr().err
    assert said.startswith("windjoin simulate: ")
    assert text in said
    assert said.count("\n") == 1


def test_plots_without_matplotlib_say_what_to_install(
    small: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "matplotlib")
    assert command(small, "--plots", tmp_path) == 2
    assert "--plots needs matplotlib: pip install 'windjoin[plot]'" in capsys.readouterr().err


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Make imports of a package fail as if it were not installed."""
    real = builtins.__import__

    def imports(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", imports)
