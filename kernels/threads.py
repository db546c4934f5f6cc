"""The same work on several threads, which Ctrl-C and errors end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from windjoin.pyx.base.crew import share_out

Made = TypeVar("Made")


def in_threads(
    threads: int, work: Callable[..., Made], items: Sequence[tuple[Any, ...]]
) -> list[Made]:
    """``work(*item)`` of every item, in their order, so many threads at a time; one: here and now.

    When one has failed or the caller is interrupted, the others end as soon as they look up.
    """
    if threads == 1:
        return [work(*item) for item in items]
    return share_out(threads, work, items)
