"""What is installed, and what a source distribution takes along."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import windjoin

ROOT = Path(__file__).parents[2]
SOURCES = {".pyx", ".pxd", ".c", ".cpp", ".h", ".inc", ".o"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_nothing_installed_is_a_source_of_compiled_code() -> None:
    # An egg-info that a build leaves in the checkout lists sources; what is installed has a RECORD.
    installed = [
        distribution
        for distribution in importlib.metadata.distributions(name="windjoin")
        if distribution.read_text("RECORD") is not None
    ]
    assert installed
    for distribution in installed:
        files = distribution.files or []
        assert [str(file) for file in files if file.suffix in SOURCES] == []


def test_the_version_is_the_one_of_the_distribution() -> None:
    assert windjoin.__version__ == importlib.metadata.version("windjoin")


def test_the_changelog_has_the_version_on_top() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == windjoin.__version__
    numbers = [tuple(map(int, one.split("."))) for one in versions]
    assert numbers == sorted(set(numbers), reverse=True)


def test_a_build_without_a_compiler_says_so_in_one_line() -> None:
    pytest.importorskip("Cython")
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext"], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "CC": "no-such-compiler -pthread"},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        "windjoin is built with a C compiler; there is no 'no-such-compiler': install one,"
        " or take a wheel: pip install --only-binary windjoin windjoin\n"
    )


def test_stubs_and_the_typing_marker_are_package_data() -> None:
    data = PROJECT["tool"]["setuptools"]["package-data"]
    assert data["windjoin"] == ["py.typed"]
    stubs = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("pyx/*/*.pyi")}
    folders = PROJECT["tool"]["setuptools"]["package-dir"]
    assert {folders[name] for name, kept in data.items() if kept == ["*.pyi"]} == stubs
    assert (ROOT / "bindings" / "py.typed").exists()


def test_a_source_distribution_takes_every_folder() -> None:
    manifest = (ROOT / "MANIFEST.in").read_text()
    packaged = {
        Path(folder).parts[0] for folder in PROJECT["tool"]["setuptools"]["package-dir"].values()
    }
    ours = {
        path.parts[len(ROOT.parts)]
        for path in ROOT.glob("*/*.*")
        if path.suffix in {".py", ".md", ".toml"}
    }
    local = {name for name in ours if name.startswith(".") or name in ("build", "dist")}
    local |= {name for name in ours if name.endswith(".egg-info")}
    missing = [name for name in ours - packaged - local if f"graft {name}\n" not in manifest]
    assert missing == []


def test_a_release_is_not_built_for_one_processor_only() -> None:
    assert "march" not in (ROOT / "setup.py").read_text()
    assert "mtune" not in (ROOT / "setup.py").read_text()


def test_what_the_sanitizers_run_is_there() -> None:
    script = (ROOT / ".ci" / "sanitize").read_text()
    chosen = [line for line in script.splitlines() if line.lstrip().startswith("chosen+=(")]
    first = re.search(r"^ +(chosen=\(tests.*\))$", script, re.MULTILINE)
    assert first
    assert chosen
    expand = "\n".join([first[1], *chosen, "printf '%s\\n' \"${chosen[@]}\""])
    shell = subprocess.run(["bash", "-c", expand], capture_output=True, text=True, check=True)
    assert [path for path in shell.stdout.split() if not (ROOT / path).exists()] == []
