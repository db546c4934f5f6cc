"""What runs first on an executor: it travels as code, so it works where windjoin is not installed.

It compares versions before it opens the plan, so a cluster that is not set up says so in one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

TaskCounts = dict[tuple[Any, ...], dict[str, Any]]


def bootstrap(wire: bytes, release: str, meter: Any = None, name: str = "task") -> Any:
    """A function of record batches for ``mapInArrow``; its work is opened on the executor.

    Spark shows ``name`` in plans and in its UI.
    """

    def windjoin_task(batches: Iterable[Any]) -> Iterator[Any]:
        import platform
        import sys

        from pyspark import TaskContext

        compared: Any = sys.modules.get("windjoin.spark.workers")
        if compared is None or release not in compared.compared:  # milliseconds of a task's time
            where = f"host {platform.node()}, {sys.executable}"
            try:
                from importlib.metadata import version

                installed = version("windjoin")
                import windjoin  # noqa: F401
            except ImportError as error:
                raise RuntimeError(
                    f"windjoin {release} is on the driver but not on an executor ({where}):"
                    f" {error}; install the same wheel there"
                ) from error
            if installed != release:
                raise RuntimeError(
                    f"windjoin is {release} on the driver but {installed} on an executor"
                    f" ({where}); install the same wheel on both"
                )
            from windjoin.spark.workers import compared as known

            known.add(release)
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        from windjoin.spark.workers import opened, settle

        work = opened(wire)
        settle()
        done: Iterator[Any] = work(batches, partition, meter)
        return done

    windjoin_task.__name__ = f"windjoin_{name}"
    return windjoin_task


class Latest:
    """How accumulators merge dictionaries; of a task that ran twice the later counts stay."""

    def zero(self, value: TaskCounts) -> TaskCounts:
        """What an attempt of a task starts from."""
        return {}

    def addInPlace(self, value1: TaskCounts, value2: TaskCounts) -> TaskCounts:
        """What Spark calls with the counts of every task that ended."""
        value1.update(value2)
        return value1
