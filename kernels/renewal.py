"""When a live join holds far more memory than its rows need, so that it had better begin anew.

What indexes, keys and blocks have grown to for many rows they keep when these go.  To begin anew
with the few that are left costs less than a look at all that was kept.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST_PEAK = 1 << 14  # rows; fewer do not hold much
SHARE = 4  # few rows: less than this part of the most there were
SOON = 16  # times as many rows as the most there were; if these are back so soon, it was in vain,
LONGER = 4  # and the next time so many times as long is waited,
LONGEST = 1024  # windows at most
LOOKS = 4  # meanwhile


class Renewal:
    """Looks how many rows there are, and says when they have been few for half a window of time.

    Where they go and come again in turn it waits longer and longer.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._wait = window // 2
        self._peak = 0
        self._given_back = 0  # the peak before the last beginning, as long as that may prove vain
        self._begun = 0  # rows that had come when it last began anew
        self._since: list[int] = []  # how far the streams had come when there first were few

    def due(self, rows: int, come: int, reached: Sequence[int]) -> bool:
        """Whether to begin anew now.

        rows: that there are; come: that have come so far; reached: how far each stream has come
        """
        self._peak = max(self._peak, rows)
        if self._given_back and SHARE * rows > self._given_back:
            soon = come - self._begun < SOON * self._given_back
            longer = min(LONGER * self._wait, LONGEST * self._window)
            self._wait = longer if soon else self._window // 2
            self._given_back = 0
        if self._peak < LEAST_PEAK or SHARE * rows > self._peak:
            self._since = []
            return False
        self._since = self._since or list(reached)
        progress = max(now - then for then, now in zip(self._since, reached, strict=True))
        if progress < self._wait:
            return False
        self._given_back, self._begun = self._peak, come
        self._peak, self._since = rows, []
        return True

    def patience(self, rows: int) -> int:
        """After how many rows to look again, as they are few and that may be due; 0: as ever."""
        if not self._since:
            return 0
        return max(rows * self._wait // (LOOKS * max(self._window, 1)), 1)
