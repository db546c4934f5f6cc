"""Functions for `mapInArrow` that let one see attempts of tasks, and disturb them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

SECONDS = 120  # for Spark to start a second attempt, on a machine that is busy with other things


def watched(
    folder: Path, seconds: float = 0.0, fail: bool = False, lag: int | None = None
) -> Callable[..., Any]:
    """Rows as they come, some at a time; a file with its worker for each attempt of a task.

    First attempts wait ``seconds`` after every few rows, or fail; that of the partition ``lag``
    waits until a second one has been seen beside it.
    """
    name = str(folder)

    def is_alone(task: str) -> bool:
        import os

        return sum(file.startswith(task) for file in os.listdir(name)) < 2

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            for start in range(0, batch.num_rows, 16):
                yield batch.slice(start, 16)
                task = f"{context.stageId()}-{context.partitionId()}-"
                with open(os.path.join(name, task + str(context.taskAttemptId())), "w") as file:
                    file.write(str(os.getpid()))
                if context.attemptNumber():
                    continue
                if fail:
                    raise RuntimeError("the first attempt fails")
                time.sleep(seconds)
                until = time.monotonic() + SECONDS
                while lag == context.partitionId() and is_alone(task) and time.monotonic() < until:
                    time.sleep(0.1)

    return run


def attempts(folder: Path) -> list[int]:
    """How often each task ran."""
    tasks = [path.name.rpartition("-")[0] for path in folder.iterdir()]
    return [tasks.count(task) for task in sorted(set(tasks))]


def workers(folder: Path) -> list[psutil.Process]:
    """The Python workers that have been seen."""
    return [psutil.Process(int(text)) for path in folder.iterdir() if (text := path.read_text())]
