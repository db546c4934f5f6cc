"""``windjoin demo`` and ``windjoin doctor``: the first things that somebody new calls."""

from __future__ import annotations

import platform
import re
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import windjoin as wj
from pyarrow import parquet
from windjoin.cli import demo, doctor
from windjoin.cli.demo import generate
from windjoin.cli.main import main
from windjoin.java import JavaError

from tests.command import refusal, windjoin


def test_demo_shows_plan_rows_pace_and_what_it_kept_runs(tmp_path: Path) -> None:
    done = windjoin("demo", "--rows", 20_000, "--keep", tmp_path / "kept")
    assert done.returncode == 0, done.stderr
    found = re.search(r"([\d,]+) results from 42,000 rows in", done.stdout)
    assert found is not None
    assert int(found[1].replace(",", "")) > 100
    assert "rows_in 42,000" in done.stdout
    assert "order: from every row of " in done.stdout
    assert "calls_ts" in done.stdout
    again = windjoin("run", tmp_path / "kept" / "query.toml")
    assert found[0] in again.stdout
    results = parquet.read_table(tmp_path / "kept" / "results.parquet")
    assert f"{results.num_rows:,}" == found[1]


def test_demo_gives_other_rows_for_another_seed() -> None:
    assert generate(500, 1)["calls"].equals(generate(500, 1)["calls"])
    assert not generate(500, 1)["calls"].equals(generate(500, 2)["calls"])


def test_demo_says_where_it_cannot_keep(folder: Path) -> None:
    said = refusal("demo", "--rows", 10, "--keep", folder / "a.csv")
    assert said == f"--keep: cannot write to '{folder}/a.csv': File exists"


def test_doctor_is_content_here() -> None:
    done = windjoin("doctor", "--all")
    assert done.returncode == 0, done.stdout
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if line[:1].strip())
    assert lines["windjoin"] == version("windjoin")
    assert lines["cpu"].startswith("path ")
    assert "this CPU offers plain" in lines["cpu"]
    assert lines["join"] == "a small join gives the right rows"
    assert done.stdout.endswith("\nall well\n")


def test_doctor_says_what_matters_in_five_lines() -> None:
    done = windjoin("doctor", WINDJOIN_ISA="plain")
    assert done.returncode == 0, done.stdout
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert [title for title, _ in lines] == ["windjoin", "packages", "spark", "kept", "join"]
    said = dict(lines)
    assert said["windjoin"].startswith(f"{version('windjoin')}, Python {platform.python_version()}")
    assert said["windjoin"].endswith(" cores, plain")
    assert f"numpy {version('numpy')}, pyarrow {version('pyarrow')}" in said["packages"]
    assert "WINDJOIN_ISA=plain" in said["kept"]
    assert said["join"] == "a small join gives the right rows; all well"


def test_doctor_finds_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = windjoin(
        "doctor",
        WINDJOIN_CACHE_DIR=str(tmp_path / "file"),
        WINDJOIN_COLOUR="red",
        JAVA_HOME=str(tmp_path),
    )
    assert done.returncode == 1
    assert f"cache        BROKEN {tmp_path}/file is not writable (File exists)" in done.stdout
    assert "WINDJOIN_COLOUR=red (unknown; known are WINDJOIN_ISA" in done.stdout
    assert f"JAVA_HOME={tmp_path} has no bin/java that runs" in done.stdout
    assert re.search(r"\n[123] broken\n$", done.stdout)


def test_doctor_says_that_a_path_is_not_known() -> None:
    shown = windjoin("doctor", WINDJOIN_ISA="sse9").stdout
    wrong = "WINDJOIN_ISA='sse9' is not known; use one of plain, avx2, avx512"
    assert f"cpu path     BROKEN {wrong}" in shown
    assert f"cache        BROKEN not looked for: {wrong}" in shown
    assert f"join         BROKEN WindjoinError: {wrong}" in shown


def test_doctor_notices_a_wrong_join(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"a": np.array([0]), "b": np.array([1])}
    monkeypatch.setattr(wj.Query, "indices", lambda *_: wrong)
    assert main(["doctor"]) == 1
    assert "join         BROKEN wrong rows [(0, 1)]" in capsys.readouterr().out
    monkeypatch.setattr(wj.Query, "indices", Mock(side_effect=OSError("no such symbol")))
    assert main(["doctor"]) == 1
    assert "join         BROKEN OSError: no such symbol" in capsys.readouterr().out


def test_doctor_misses_packages_and_java(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "REQUIRED", ("numpy", "no-such-package"))
    monkeypatch.setattr(doctor, "find_java", Mock(side_effect=JavaError("Spark needs Java 17")))
    monkeypatch.setattr(doctor, "find_spec", lambda name: name == "pyspark" or None)
    monkeypatch.setattr(doctor, "CHECKS", {"some": (doctor._packages, doctor._java)})
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "no-such-package BROKEN missing: pip install no-such-package" in shown
    assert "java         BROKEN Spark needs Java 17" in shown
    monkeypatch.setattr(doctor, "REQUIRED", ())
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    assert main(["doctor", "--all"]) == 0
    assert "java         not found (only Spark needs it)" in capsys.readouterr().out


def test_doctor_tells_which_settings_of_spark_are_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "CHECKS", {"spark": (doctor._spark,)})
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert main(["doctor", "--all"]) == 0
    shown = capsys.readouterr().out
    assert "spark.python.unix.domain.socket.enabled=true is not in" in shown
    assert "without it every Python task takes 40 ms longer" in shown
    settings = import_module("windjoin.spark.settings")
    lines = ["# all of them", "", *(f"{one.key} = {one.value}" for one in settings.SETTINGS)]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    assert main(["doctor", "--all"]) == 0
    assert "spark." not in capsys.readouterr().out
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == f"spark        Spark {version('pyspark')}\n"
    monkeypatch.setattr(doctor, "version", lambda name: "3.5.1")
    assert main(["doctor"]) == 1
    assert (
        "spark        BROKEN this is Spark 3.5.1; windjoin.spark needs" in capsys.readouterr().out
    )


def test_demo_on_spark_asks_for_spark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    assert main(["demo", "--rows", "100", "--spark"]) == 1
    assert "--spark: Spark is not installed; pip install" in capsys.readouterr().err
