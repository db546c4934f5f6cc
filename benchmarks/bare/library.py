"""Compile a file of loops for this processor and load it."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = ("cc", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")


@cache
def loops(name: str) -> Any:
    """Functions of ``NAME.c``; the one called like the file returns int64."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.so"
        source = Path(__file__).parent / f"{name}.c"
        subprocess.run([*COMPILER, "-o", str(path), str(source)], check=True)
        library = ctypes.CDLL(str(path))
    getattr(library, name).restype = ctypes.c_int64
    return library


def pointers(arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Addresses of arrays, as an argument; the arrays must outlive the call."""
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
