"""The allocator that fails on purpose, built with the compiler at hand and loaded before libc."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COMPILER = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
EVER = 2**62


def build(folder: Path) -> Path:
    """The shared object, compiled into a folder."""
    made = folder / "allocator.so"
    options = ["-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-pthread"]
    # a compiler that knows malloc may turn what it does into a call of itself
    options += ["-fno-builtin"]
    subprocess.run([*COMPILER, *options, str(HERE / "allocator.c"), "-o", str(made)], check=True)
    return made


def walked(allocator: Path, *pairs: str, places: int = 0) -> list[dict[str, Any]]:
    """What `tests.faults.walk` finds with the allocator in place."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.walk", str(places), *pairs],
        env={**os.environ, "LD_PRELOAD": str(allocator)},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


class Allocator:
    """What a program started by `walked` does with it."""

    def __init__(self) -> None:
        self._c = _library()
        if self._c.allocator_watch(b"/pyx/") == 0:
            raise RuntimeError("no compiled module of windjoin is loaded yet")

    def arm(self, first: int, last: int) -> None:
        """From now on calls of compiled modules count, and those numbered first .. last fail."""
        self._c.allocator_arm(first, last)

    def disarm(self) -> int:
        """Nothing fails any more; how many calls there were."""
        return int(self._c.allocator_disarm())

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return int(self._c.allocator_failed())

    @property
    def held(self) -> int:
        """Blocks that were given out since it was armed and are not free yet."""
        return int(self._c.allocator_held())


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.allocator_arm.argtypes = [ctypes.c_long, ctypes.c_long]
    for name in ("allocator_disarm", "allocator_failed", "allocator_held"):
        getattr(library, name).restype = ctypes.c_long
    return library
