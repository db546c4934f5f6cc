"""Event time as routers see it: quiet stretches left out, very long windows in coarser ticks.

A router thinks in segments, one after the other without a gap, and in times that fit 62 bits.
Event times may leave out years, and windows may be longer than any of that.  Where nothing is left
that a row to come can meet, the router's clock stands still while event time goes on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

LONGEST_WINDOW = 44  # bits


class RouterClock:
    """Two clocks: within an epoch they differ by a constant and a factor.

    >>> clock = RouterClock([10, 20])
    >>> clock.begin(1_000_000), clock.real(3)
    (None, 1000003)
    >>> clock.advance(5)
    >>> clock.skip_to(9_000_000), clock.now, clock.real(clock.now), clock.real(3)
    (None, 26, 9000000, 1000003)
    """

    def __init__(self, windows: Sequence[int]) -> None:
        self.shift = max(0, max(windows).bit_length() - LONGEST_WINDOW)
        self.windows = [(window >> self.shift) + (self.shift > 0) for window in windows]
        self.quiet = max(self.windows) + 1  # after so long nothing can be met any more
        self.now = 0  # the next border, in the router's time
        self._borders: list[int] = []
        self._origins: list[int] = []  # event time at router time 0, from that border on

    @property
    def begun(self) -> bool:
        """Whether any epoch has a time."""
        return bool(self._borders)

    @property
    def real_now(self) -> int:
        """The next border, in event time."""
        return self.real(self.now)

    def begin(self, real: int) -> None:
        """The first epoch starts at this event time."""
        self._borders, self._origins = [self.now], [real - (self.now << self.shift)]

    def advance(self, border: int) -> None:
        """The next epoch starts at this router time."""
        self.now = border

    def skip_to(self, real: int) -> None:
        """If event time goes on to ``real`` with nothing in between, leave out what is quiet."""
        if real - self.real_now > self.quiet << self.shift:
            self.now += self.quiet
            self._borders.append(self.now)
            self._origins.append(real - (self.now << self.shift))

    @property
    def quiet_from(self) -> int:
        """The event time from which on what is quiet may be left out."""
        return self.real_now + (self.quiet << self.shift)

    def real(self, time: int) -> int:
        """The event time at which a tick of the router's clock begins."""
        at = max(bisect_right(self._borders, time) - 1, 0)
        return (time << self.shift) + self._origins[at]

    def real_stop(self, stop: int) -> int:
        """The event time at which the tick before ``stop`` ends."""
        return self.real(stop - 1) + (1 << self.shift)

    def expire(self, before: int) -> None:
        """Router times before this one are not asked for any more."""
        gone = max(bisect_right(self._borders, before) - 1, 0)
        del self._borders[:gone], self._origins[:gone]
