"""Python workers of Spark in which a slot of a continuous join is slow for a while: a rehearsal.

``spark.python.daemon.module`` set to ``windjoin.spark.slow_worker`` has Spark start them, and the
variable ``WINDJOIN_SLOW`` tells which slot, how many times slower, from which epoch up to which:
``"0 4 10 20"``.  What the slot does takes that much longer, as on a machine with other work, so
`start` has to find out by itself.  ``"all 10 0 99; 0 4 10 20"`` makes all slots slow, and one
slower: that is as many slow machines, of which none waits for another's processor.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import daemon
from windjoin.epochs import probing
from windjoin.errors import QueryError

VARIABLE = "WINDJOIN_SLOW"
ALL = "all"  # in place of a slot


@dataclass(frozen=True, slots=True)
class Slowed:
    """A slot, how many times longer it takes, and the epochs in which it does."""

    slot: int | None  # None: all
    by: float
    first: int
    last: int

    @classmethod
    def told(cls, text: str) -> tuple[Slowed, ...]:
        """As the variable has it.

        >>> Slowed.told("all 2 0 99; 0 4 10 20")[1]
        Slowed(slot=0, by=4.0, first=10, last=20)
        """
        found = []
        for part in text.split(";"):
            try:
                slot, by, first, last = part.split()
                number = None if slot == ALL else int(slot)
                found.append(cls(number, max(1.0, float(by)), int(first), int(last)))
            except ValueError:
                raise QueryError(
                    f"{VARIABLE}={text!r}: give slot, factor, first epoch, and the epoch after the"
                    ' last, such as "0 4 10 20"'
                ) from None
        return tuple(found)

    def times(self, slot: int, epoch: int) -> float:
        """How many times longer a slot takes in an epoch."""
        there = self.slot in (None, slot) and self.first <= epoch < self.last
        return self.by if there else 1.0


class SlowWork(probing.SlotWork):
    """The work of a slot, at another pace."""

    slowed: tuple[Slowed, ...]

    def take(self, batches: Iterable[pa.RecordBatch]) -> None:
        """All segments, slowly."""
        with self._pace():
            super().take(batches)

    def keep(self) -> None:
        """The slot's file, slowly."""
        with self._pace():
            super().keep()

    def results(self) -> Iterator[pa.RecordBatch]:
        """The same results, slowly."""
        found = super().results()
        while True:
            with self._pace():
                batch = next(found, None)
            if batch is None:
                return
            yield batch

    @contextmanager
    def _pace(self) -> Iterator[None]:
        began = time.thread_time()
        yield
        times = math.prod(one.times(self.slot, self.manifest.epoch) for one in self.slowed)
        if times > 1:
            time.sleep((times - 1) * (time.thread_time() - began))


def slow_down() -> None:
    """Have this worker take its time, as the variable tells."""
    SlowWork.slowed = Slowed.told(os.environ.get(VARIABLE, "0 1 0 0"))
    probing.SlotWork = SlowWork  # type: ignore[misc]


def main() -> None:
    """What Spark starts: its own daemon, which forks a process for each worker.

    The daemon takes no worker modules but PySpark's own.
    """
    spark: Any = daemon
    own = spark.worker

    def worker(*given: Any) -> Any:
        slow_down()
        return own(*given)

    spark.worker = worker
    spark.manager()


if __name__ == "__main__":
    main()
