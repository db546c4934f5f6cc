"""Windows of rows: ``window=wj.rows(1000)``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windjoin.errors import QueryError

if TYPE_CHECKING:
    from windjoin.query import Query
    from windjoin.streams import Stream

MOST_ROWS = 2**31
_TEXT = re.compile(r"\s*([\d_,]+)\s+rows?\s*")


@dataclass(frozen=True)
class RowWindow:
    """A window that holds the last rows of its stream; made by `rows`.

    >>> print(RowWindow(1000))
    1000 rows
    """

    count: int

    def __str__(self) -> str:
        return f"{self.count} row{'s' if self.count > 1 else ''}"

    def __repr__(self) -> str:
        return f"rows({self.count})"


def rows(count: int) -> RowWindow:
    """The last ``count`` rows of a stream as its window, however long ago they came.

    A row is in results with later rows until ``count`` rows of its own stream have come after it,
    in the order of time, then of streams as they are joined, then of arrival.  Rows that ``where``
    excludes and rejected rows do not count.

    >>> import windjoin as wj
    >>> a = wj.stream("a", time="t", window=wj.rows(2))
    >>> b = wj.stream("b", time="t", window=1000)
    >>> tables = {"a": {"t": [1, 2, 3]}, "b": {"t": [9]}}
    >>> wj.join(a, b, cross=True).indices(tables)
    {'a': array([1, 2]), 'b': array([0, 0])}
    """
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_ROWS:
        raise QueryError(f"rows({count!r}): give a number of rows from 1 to {MOST_ROWS:,}")
    return RowWindow(count)


def window_of(text: Any) -> Any:
    """A window as query files say it: ``"1000 rows"``, or what `stream` takes.

    >>> window_of("1,000 rows"), window_of("5s")
    (rows(1000), '5s')
    """
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    return rows(int(re.sub("[_,]", "", found[1]))) if found else text


def counts_rows(query: Query) -> bool:
    """Whether any stream has such a window."""
    return any(isinstance(stream.window, RowWindow) for stream in query.streams)


def check_row_windows(streams: Sequence[Stream], nearest: object) -> None:
    """Refuse what such windows are not for."""
    for stream in streams:
        if isinstance(stream.window, RowWindow) and nearest is not None:
            raise QueryError(
                f"stream {stream.name!r}: nearest= is not for windows of rows,"
                f" window={stream.window!r}; give it a length of time"
            )


def refuse_row_windows(query: Query, what: str) -> None:
    """`QueryError` where such a window is not understood; ``what``: what was asked for."""
    for stream in query.streams:
        if isinstance(stream.window, RowWindow):
            raise QueryError(
                f"{what} is not for windows of rows, and stream {stream.name!r} has"
                f" window={stream.window!r}; give it a length of time"
            )


def check_session(query: Query, hosts: bool) -> None:
    """Refuse sessions of joins that cannot know which rows are the last ones."""
    if hosts:
        refuse_row_windows(query, "a session with hosts=")
    if query.sides.combined(len(query.streams)):
        refuse_row_windows(query, "a session with exists= or missing= of several streams")
