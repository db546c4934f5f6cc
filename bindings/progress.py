"""A progress bar for long work, where somebody wants one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from windjoin.flags import check_flag

# True: a bar on standard error; a function: called with (done, in all)
ProgressOption = bool | Callable[[int, int], None]

ProgressFunction = Callable[[int, int], None]
SECONDS_BETWEEN = 0.1


def check_progress(option: object) -> None:
    """Refuse what is neither a choice nor a function."""
    if not callable(option):
        check_flag("progress", option, ", or a function of (done, in all)")


@contextmanager
def progress_bar(option: ProgressOption, what: str, unit: str) -> Iterator[ProgressFunction | None]:
    """Something to report (done, in all) to while the work lasts; None where nobody looks."""
    check_progress(option)
    if callable(option):
        yield _seldom(option)
    elif option:
        with _rich_bar(what, unit) as report:
            yield _seldom(report)
    else:
        yield None


def _seldom(report: ProgressFunction) -> ProgressFunction:
    """Not more often than the eye can follow, but always when all is done."""
    last = 0.0

    def sometimes(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done >= total or now - last >= SECONDS_BETWEEN:
            last = now
            report(done, total)

    return sometimes


@contextmanager
def _rich_bar(what: str, unit: str) -> Iterator[ProgressFunction]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
