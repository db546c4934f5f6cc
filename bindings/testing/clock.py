"""A clock that tests move by hand, for sessions that read one."""

from __future__ import annotations

from typing import Any

from windjoin.durations import parse_duration
from windjoin.errors import QueryError


class Clock:
    """Seconds that pass when they are told to: ``q.open(clock=clock)``.

    >>> import windjoin as wj
    >>> from windjoin import testing
    >>> clock = testing.Clock()
    >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
    >>> with wj.join(a, b, on=a["k"] == b["k"]).open(idle="30s", clock=clock) as s:
    ...     _ = s.push("a", {"t": [1], "k": [5]}), s.push("b", {"t": [1], "k": [6]})
    ...     clock.advance("31s")
    ...     _ = s.push("a", {"t": [99], "k": [7]})
    ...     s.metrics["streams"]["b"]["idle"], clock()
    (True, 31.0)
    """

    def __init__(self, start: float = 0.0) -> None:
        if isinstance(start, bool) or not isinstance(start, (int, float)):
            raise QueryError(f"Clock({start!r}): give seconds, such as 0.0")
        self.now = float(start)

    def __call__(self) -> float:
        """The time, in seconds."""
        return self.now

    def advance(self, length: Any) -> None:
        """Let some time pass: seconds, or a duration such as "30s".

        >>> clock = Clock()
        >>> clock.advance(2.5)
        >>> clock()
        2.5
        """
        number = isinstance(length, (int, float)) and not isinstance(length, bool)
        seconds = length if number else parse_duration(length, "Clock.advance").nanoseconds / 1e9
        if not seconds >= 0:
            raise QueryError(f"Clock.advance({length!r}): a clock goes forward; give 0 or more")
        self.now += seconds
