"""State of joins that lies in files: what is spilled, saved and shipped is one unit."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windjoin.given import FilePath
    from windjoin.query import Query
    from windjoin.session import Session


def restore(query: Query, path: FilePath, *, clock: Callable[[], float] = monotonic) -> Session:
    """A session that goes on where the one was that was saved to ``path``.

    In another process, on another machine, or with another version of windjoin that reads the same
    format.  ``query`` must be the same query; another one is refused, with what differs.  All
    options of `Query.open` are as they were; ``clock`` is given anew, and how long streams have
    been silent is counted from now on.  `Session.position` is what `Session.save` was given.

    >>> import tempfile
    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> folder = tempfile.mkdtemp()
    >>> with q.open() as s:
    ...     _ = s.push("a", {"t": [1, 2], "k": [7, 8]})
    ...     s.save(folder, position={"a": 2})
    >>> with wj.restore(q, folder) as s:
    ...     s.position, s.push("b", {"t": [5], "k": [8]}).to_pylist()
    ({'a': 2}, [{'a_t': 2, 'a_k': 8, 'b_t': 5, 'b_k': 8}])
    """
    from windjoin.state.restoring import restored

    return restored(query, path, clock)
