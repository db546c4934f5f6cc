"""The allocator that fails on purpose, built with the compiler at hand and loaded before libc."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
import sys
import sysconfig
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
COMPILER = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


class Place(NamedTuple):
    """A call that is to fail: of a site, which is a stack of calls, the n-th."""

    site: int
    nth: int


def build(folder: Path) -> Path:
    """The shared object, compiled into a folder."""
    made = folder / "allocator.so"
    options = ["-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-pthread"]
    # a compiler that knows malloc may turn what it does into a call of itself
    options += ["-fno-builtin"]
    subprocess.run([*COMPILER, *options, str(HERE / "allocator.c"), "-o", str(made)], check=True)
    return made


def walked(allocator: Path, *pairs: str, which: str = "sites") -> list[dict[str, Any]]:
    """What `tests.faults.walk` finds with the allocator in place."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.walk", which, *pairs],
        env={**os.environ, "LD_PRELOAD": str(allocator)},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Allocator:
    """What a program started by `walked` does with it."""

    def __init__(self) -> None:
        self._c = _library()
        if self._c.allocator_watch(b"/pyx/") == 0:
            raise RuntimeError("no compiled module of windjoin is loaded yet")

    def arm(self, place: Place | None = None, *, all_after: bool = False) -> None:
        """From now on calls of compiled modules count, and this one fails."""
        self._c.allocator_arm(*(place or Place(0, 0)), all_after)

    def disarm(self) -> list[Place]:
        """Nothing fails any more; the calls there were."""
        sites = self._c.allocator_sites()
        so_many: Counter[int] = Counter()
        calls = []
        for number in range(self._c.allocator_disarm()):
            so_many[sites[number]] += 1
            calls.append(Place(sites[number], so_many[sites[number]]))
        return calls

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
    library.allocator_arm.argtypes = [ctypes.c_uint64, ctypes.c_long, ctypes.c_int]
    library.allocator_sites.restype = ctypes.POINTER(ctypes.c_uint64)
    for name in ("allocator_disarm", "allocator_failed", "allocator_held"):
        getattr(library, name).restype = ctypes.c_long
    return library
