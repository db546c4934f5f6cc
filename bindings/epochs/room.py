"""How much memory a worker may use for what it keeps from one epoch to the next."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

SHARE = 4  # of the memory of a core, one part of so many
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
OF_SPARK = "PYSPARK_EXECUTOR_MEMORY_MB"  # for each worker of an executor


@cache
def room() -> int:
    """Bytes: a quarter of what there is for a core, as other workers have the others.

    >>> room() > 0
    True
    """
    some = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if some else os.cpu_count() or 1
    known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    known += [int(text) for text in map(_text, LIMITS) if text.isdigit()]
    own = min(known) // cores
    megabytes = os.environ.get(OF_SPARK, "")
    if megabytes.isdigit():
        own = min(own, int(megabytes) << 20)
    return own // SHARE


def _text(path: str) -> str:
    """What a file says; nothing if it is not there."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
