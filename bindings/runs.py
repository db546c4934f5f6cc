"""What runs of a query leave behind: their bindings and plans for the next, counters, explain()."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windjoin.run import BatchRun


def nothing_run(names: Iterable[str]) -> dict[str, object]:
    """Counters before the first run.

    >>> nothing_run(["a"])["streams"]
    {'a': {'rows_in': 0, 'joinable': 0, 'rejected': 0}}
    """
    counted = dict.fromkeys(("rows_in", "results", "rejected", "comparisons", "threads"), 0)
    streams = {name: dict.fromkeys(("rows_in", "joinable", "rejected"), 0) for name in names}
    return {**counted, "streams": streams}


class Runs:
    """The last run of a query: of the thread that asks, or of any if it has run none.

    Threads may run one query at the same time; each sees what it did itself.  It does not pickle:
    elsewhere a query has not run yet.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()
        self._latest: BatchRun | None = None

    def add(self, run: BatchRun) -> None:
        """A run of this thread has ended."""
        self._own.last = run
        with self._lock:
            self._latest = run

    def last(self) -> BatchRun | None:
        """The last run of this thread, or of any thread; None before the first."""
        own: BatchRun | None = getattr(self._own, "last", None)
        if own is not None:
            return own
        with self._lock:
            return self._latest

    def __reduce__(self) -> tuple[type[Runs], tuple[()]]:
        return Runs, ()
