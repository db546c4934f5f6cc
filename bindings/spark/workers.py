"""Python workers of Spark, which do one task after the other."""

from __future__ import annotations

import gc

_settled = False


def settle() -> None:
    """Have what a worker has imported by now left out of every search for garbage to come.

    Spark has its workers search after each task, before they take the next: 35 ms for the objects
    of modules alone, which never become garbage.
    """
    global _settled
    if not _settled:
        gc.collect()
        gc.freeze()
        _settled = True
