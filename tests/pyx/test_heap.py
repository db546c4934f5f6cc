"""Kernels write nowhere but in their arrays: joins under a C library that looks at every border."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest
from windjoin.pyx.base.cpu import supported

CHECKS = "libc_malloc_debug.so.0"  # of glibc: ends the program when a border was written over
JOIN = """
import numpy as np
import windjoin as wj

rng = np.random.default_rng(5)
tables = {
    name: {
        "t": np.sort(rng.integers(0, 1_000_000, rows)),
        "k": rng.integers(0, 3_000, rows),
        "x": rng.random(rows) * 100,
    }
    for name, rows in (("a", 20_000), ("b", 3_000), ("c", 20_000))
}
a, b, c = (wj.stream(name, time="t", window=200_000) for name in "abc")
query = wj.join(a, b, c, on=[abs(a["x"] - b["x"]) <= 0.05, a["k"] == c["k"]])
print(query.run(tables).num_rows, "results")
"""


def checks() -> bool:
    try:
        ctypes.CDLL(CHECKS)
    except OSError:
        return False
    return True


@pytest.mark.skipif(not checks(), reason=f"there is no {CHECKS}")
@pytest.mark.parametrize("isa", ["plain", "avx2", "avx512"])
def test_a_band_that_fills_its_pairs_writes_no_further(isa: str) -> None:
    if isa not in supported():
        pytest.skip(f"this CPU has no {isa}")
    environment = os.environ | {"LD_PRELOAD": CHECKS, "MALLOC_CHECK_": "3", "WINDJOIN_ISA": isa}
    command = [sys.executable, "-c", JOIN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "42164 results\n"
