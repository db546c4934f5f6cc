"""Folders import only what docs/architecture.md lets them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FREE = {"libc", "cpython", "cython", "typing_extensions"}


def table() -> dict[str, tuple[set[str], set[str]]]:
    """By folder what docs/architecture.md says that it may import, and must not."""
    rules = {}
    for line in (ROOT / "docs/architecture.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch(r"`[\w/]+/`", cells[0]):
            may, never = (
                {name.strip("` ") for name in cell.split(",")} - {"", "-"} for cell in cells[3:]
            )
            rules[cells[0].strip("`/")] = may, never
    return rules


RULES = table()
CIMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+)?c?import\s+([\w.]+)", re.MULTILINE)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file names in an import, also inside functions."""
    text = path.read_text()
    if path.suffix in (".pyx", ".pxd"):
        for whole, single in CIMPORT.findall(text):
            yield whole or single
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def sources(folder: str) -> list[Path]:
    """Files of a folder that no row of a folder inside takes."""
    suffixes = {".py", ".pyi", ".pyx", ".pxd"}
    found = [path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    inside = [ROOT / name for name in RULES if name.startswith(f"{folder}/")]
    return [path for path in found if not any(path.is_relative_to(other) for other in inside)]


def home(module: str) -> str:
    """The row that a module of ours belongs to; the distribution that another one comes from."""
    if module.partition(".")[0] != "windjoin":
        return module.partition(".")[0]
    packages = [name for name in SETUP["packages"] if f"{module}.".startswith(f"{name}.")]
    folder = SETUP["package-dir"][max(packages, key=len)]
    return str(max((name for name in RULES if f"{folder}/".startswith(f"{name}/")), key=len))


def broken(folder: str, module: str) -> bool:
    """Whether a row forbids this import, or does not name it."""
    may, never = RULES[folder]
    name = home(module)
    if name in never:
        return True
    return name not in may | FREE | set(sys.stdlib_module_names) | {folder}


def test_every_packaged_folder_has_a_row() -> None:
    rooms = {folder for folder in SETUP["package-dir"].values() if not folder.startswith("pyx/")}
    assert rooms == set(RULES)


@pytest.mark.parametrize("folder", RULES)
def test_a_folder_imports_only_what_its_row_says(folder: str) -> None:
    paths = sources(folder)
    assert paths
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in paths
        for module in imports(path)
        if broken(folder, module)
    ]
    assert wrong == []


def test_a_broken_row_is_seen() -> None:
    assert broken("pyx", "windjoin.kernels.spec")
    assert broken("pyx", "logging")
    assert broken("kernels", "windjoin.query")
    assert broken("bindings", "pyspark.sql")
    assert broken("bindings/spark", "windjoin.pyx.base.cpu")
    assert not broken("bindings/spark", "windjoin.arrow.plan")


def test_the_reader_of_imports_sees_them_all(tmp_path: Path) -> None:
    python, cython = tmp_path / "a.py", tmp_path / "b.pyx"
    python.write_text("import os.path\ndef f():\n    from numpy import random\n")
    cython.write_text("from libc.math cimport sin\ncimport numpy as np\nimport pyarrow\n")
    assert list(imports(python)) == ["os.path", "numpy", "numpy.random"]
    assert list(imports(cython)) == ["libc.math", "numpy", "pyarrow"]


def test_every_folder_with_code_is_packaged() -> None:
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for room in ("bindings", "kernels", "diffusion", "pyx")
        for path in (ROOT / room).rglob("*.py")
    }
    assert folders == set(SETUP["package-dir"].values())
    assert set(SETUP["packages"]) == set(SETUP["package-dir"])


def test_every_test_lies_in_a_folder() -> None:
    assert not [path.name for path in (ROOT / "tests").glob("test_*.py")]
    assert all((path.parent / "__init__.py").exists() for path in ROOT.glob("tests/*/test_*.py"))


# names that once meant several things each
ONCE = (
    *("Probe", "Hop", "Part", "Waiting", "Output", "Store", "Clock", "Statistics", "Route"),
    *("Segment", "Side", "Rows", "Counts", "Options", "Step", "Held", "Window", "Run", "Source"),
    *("Block", "Limits", "Work", "Sample"),
)


@pytest.mark.parametrize("name", ONCE)
def test_a_name_of_a_type_has_one_meaning(name: str) -> None:
    """A class or struct in one module; its header, declarations and stub are the same."""
    made = re.compile(
        rf"^(?:cdef )?class {name}\b|^(?:cdef |typedef )?struct {name}\b|^}} {name};", re.M
    )
    homes = {
        path.with_suffix("")
        for room in ("pyx", "kernels", "diffusion", "bindings")
        for path in (ROOT / room).rglob("*")
        if path.suffix in {".py", ".pyx", ".h"} and made.search(path.read_text())
    }
    assert len(homes) <= 1, sorted(map(str, homes))


# what a package of compiled modules builds on, as `windjoin.pyx` draws it
BELOW = {
    "base": set(),
    "encoding": {"base"},
    "indexes": {"base", "encoding"},
    "similarity": {"base", "encoding", "indexes"},
    "probing": {"base", "encoding", "indexes"},
    "live": {"base", "encoding", "indexes", "probing", "arrow"},
    "arrow": {"base"},
    "routing": set(),
}


def test_compiled_packages_build_on_those_below() -> None:
    headers = {path.name: path.parent.name for path in ROOT.glob("pyx/*/*.[hi]*")}
    assert len(headers) == len(list(ROOT.glob("pyx/*/*.[hi]*"))), "two headers of one name"
    assert set(BELOW) == {path.parent.name for path in ROOT.glob("pyx/*/__init__.py")}
    for path in ROOT.glob("pyx/*/*.*"):
        if path.suffix not in {".pyx", ".pxd", ".h", ".inc"}:
            continue
        text = path.read_text()
        used = set(re.findall(r"^\s*(?:from|c?import) windjoin\.pyx\.(\w+)", text, re.MULTILINE))
        used |= {headers[name] for name in re.findall(r'(?:include|from) "([\w.]+)"', text)}
        allowed = BELOW[path.parent.name] | {path.parent.name}
        assert used <= allowed, f"{path.relative_to(ROOT)} uses {sorted(used - allowed)}"


def test_every_compiled_module_has_a_stub() -> None:
    assert [
        path.name for path in (ROOT / "pyx").rglob("*.pyx") if not path.with_suffix(".pyi").exists()
    ] == []


def test_only_guarded_code_knows_the_processor() -> None:
    """Intrinsics stand between ``#ifdef WINDJOIN_X86`` and its end, so that any CPU can compile."""
    for header in (ROOT / "pyx").glob("*/*.[hi]*"):
        depth: list[bool] = []
        for number, line in enumerate(header.read_text().splitlines(), 1):
            word = line.strip()
            if word.startswith("#if"):
                depth.append("WINDJOIN_X86" in word or "__x86_64__" in word)
            elif word.startswith("#else"):
                depth[-1] = False
            elif word.startswith("#endif"):
                depth.pop()
            elif re.search(r"\b_mm\d*_|\b__m\d|immintrin|__builtin_(ia32|cpu)|TARGET_AVX", word):
                assert any(depth), f"{header.name}, line {number}: {word}"
