"""What runs of a query leave behind: their bindings and plans for the next, counters, explain()."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windjoin.kernels.spec import I64
    from windjoin.run import BatchRun


def nothing_run(names: Iterable[str]) -> dict[str, object]:
    """Counters before the first run.

    >>> nothing_run(["a"])["streams"]
    {'a': {'rows_in': 0, 'joinable': 0, 'rejected': 0}}
    """
    counted = dict.fromkeys(("rows_in", "results", "rejected", "comparisons", "threads"), 0)
    streams = {name: dict.fromkeys(("rows_in", "joinable", "rejected"), 0) for name in names}
    return {**counted, "streams": streams}


@dataclass
class StretchesRun:
    """What a run in stretches of time did; their sessions are gone by then."""

    counters: dict[str, Any]
    explained: dict[str, Any]
    rejected: dict[str, I64] = field(default_factory=dict)  # nobody knows their numbers

    def metrics(self) -> dict[str, Any]:
        """Counters of the run, in all and per stream."""
        return self.counters


class Runs:
    """The last run of a query: of the thread that asks, or of any if it has run none.

    What the next run learns from is the last of whole tables; what is shown is the last of any
    kind.  Threads may run one query at the same time; each sees what it did itself.  It does not
    pickle: elsewhere a query has not run yet.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()
        self._latest: BatchRun | None = None
        self._shown: BatchRun | StretchesRun | None = None

    def add(self, run: BatchRun) -> None:
        """A run of this thread has ended."""
        self._own.last = run
        with self._lock:
            self._latest = run
        self.show(run)

    def show(self, run: BatchRun | StretchesRun) -> None:
        """What this thread did last."""
        self._own.shown = run
        with self._lock:
            self._shown = run

    def shown(self) -> BatchRun | StretchesRun | None:
        """The last run of any kind of this thread, or of any thread; None before the first."""
        own: BatchRun | StretchesRun | None = getattr(self._own, "shown", None)
        if own is not None:
            return own
        with self._lock:
            return self._shown

    def last(self) -> BatchRun | None:
        """The last run of this thread, or of any thread; None before the first."""
        own: BatchRun | None = getattr(self._own, "last", None)
        if own is not None:
            return own
        with self._lock:
            return self._latest

    def __reduce__(self) -> tuple[type[Runs], tuple[()]]:
        return Runs, ()
