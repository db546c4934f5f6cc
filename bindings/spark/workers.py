"""Python workers of Spark, which do one task after the other."""

from __future__ import annotations

import gc
import pickle
import sys
from functools import lru_cache
from typing import Any

compared: set[str] = set()  # releases on drivers that this worker's has been found to be
_known = 0  # modules that were imported when objects were last left out


@lru_cache(maxsize=16)
def opened(wire: bytes) -> Any:
    """The work of a task; that of a streaming query comes again with every epoch."""
    return pickle.loads(wire)


def settle() -> None:
    """Have what a worker has imported by now left out of every search for garbage to come.

    Spark has its workers search after each task, before they take the next: 10 to 35 ms for the
    objects of modules alone, which never become garbage.  Tasks import some only while they work,
    so each looks for what the one before has brought.
    """
    global _known
    if len(sys.modules) != _known:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        _known = len(sys.modules)
