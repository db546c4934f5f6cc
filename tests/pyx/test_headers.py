"""The C headers stand on their own, on x86-64 and where there is no x86-64."""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

FOLDERS = sorted(path.parent for path in Path(__file__).parents[2].glob("pyx/*/__init__.py"))
HEADERS = sorted(path for folder in FOLDERS for path in folder.glob("*.h"))
COMPILER = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


SYSTEM = sorted(
    {
        line
        for path in HEADERS
        for line in path.read_text().splitlines()
        if line.startswith("#include <") and "immintrin" not in line
    }
)


@pytest.mark.parametrize("header", [path.name for path in HEADERS])
@pytest.mark.parametrize("processor", ["x86-64", "plain"])
def test_header_compiles_alone(header: str, processor: str, tmp_path: Path) -> None:
    before = []
    if processor == "plain":  # the system's headers must still know where they are
        before = [*SYSTEM, "#undef __x86_64__"]
    source = tmp_path / "alone.c"
    source.write_text(
        "\n".join([*before, f'#include "{header}"', "int main(void) { return 0; }\n"])
    )
    options = ["-c", "-O1", "-Wall", "-Werror", "-Wno-unused-function"]
    options += [f"-I{folder}" for folder in FOLDERS]
    done = subprocess.run(
        [*COMPILER, *options, str(source), "-o", str(tmp_path / "alone.o")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
