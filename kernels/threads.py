"""The same work on several threads, which Ctrl-C and errors end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, TypeVar

POLL_SECONDS = 0.1  # how often a waiting main thread looks for Ctrl-C

Made = TypeVar("Made")


def in_threads(
    threads: int,
    work: Callable[..., Made],
    items: Sequence[tuple[Any, ...]],
    stop: Callable[[], None] = lambda: None,
) -> list[Made]:
    """``work(*item)`` of every item, in their order, so many threads at a time; one: here and now.

    stop: called when one has failed or the caller is interrupted, to end the others early
    """
    if threads == 1:
        return [work(*item) for item in items]
    with ThreadPoolExecutor(threads, "windjoin") as pool:
        futures = [pool.submit(work, *item) for item in items]
        try:
            while (state := wait(futures, POLL_SECONDS, FIRST_EXCEPTION)).not_done:
                for future in state.done:
                    future.result()  # raises what went wrong first
        except BaseException:
            stop()
            raise
        return [future.result() for future in futures]
