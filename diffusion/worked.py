"""How long rows took, as if nothing else ran beside them: what segment lengths are judged by.

The clock tells what other programs did as well.  So seconds of processors are counted: a stretch
of work took as long as the busiest host and the calling thread worked in it, and no less than all
of them together need on the processors there are.  Hosts wait for each other where a stretch ends,
at the end of a call or after many epochs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import thread_time

LEAST_SECONDS = 0.005  # of a reading
EPOCHS = 64  # of a stretch, at most


class Worked:
    """Rows per second of work, from stretch to stretch.

    >>> worked = Worked(processors=2)
    >>> worked.begin({0: 1.0, 1: 1.0}, aside=0.0)
    >>> worked.end({0: 1.5, 1: 1.25}, aside=0.0, rows=100)
    >>> 195 < worked.rate() <= 200
    True
    """

    def __init__(self, processors: int | None = None) -> None:
        self._processors = processors or cores()
        self._rows, self._seconds = 0, 0.0
        self._hosts: dict[int, float] = {}
        self._caller = self._aside = 0.0

    def begin(self, hosts: Mapping[int, float], *, aside: float) -> None:
        """A stretch begins, in the calling thread.

        hosts: seconds of a processor that each has taken so far, by number
        aside: those of them that the calling thread took for hosts
        """
        self._hosts, self._aside, self._caller = dict(hosts), aside, thread_time()

    def end(self, hosts: Mapping[int, float], *, aside: float, rows: int) -> None:
        """It ends; so many rows were taken in it."""
        caller = thread_time() - self._caller
        spent = [seconds - self._hosts.get(number, 0.0) for number, seconds in hosts.items()]
        every = sum(spent) + caller - (aside - self._aside)
        self._seconds += max(caller, *spent, every / self._processors)
        self._rows += rows

    def rate(self) -> float | None:
        """Rows per second since the last call that told it; None if that is too short to tell."""
        if self._seconds < LEAST_SECONDS or not self._rows:
            return None
        done = self._rows / self._seconds
        self._rows, self._seconds = 0, 0.0
        return done


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
