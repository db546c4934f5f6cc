"""What is routed: streams with windows, cut into segments.  All times are integers of one unit.

Windows are inclusive, as everywhere inside: a row at ``t`` meets rows of its past that are at most
``window`` older.  Routing never looks at a payload, only at the figures below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from windjoin.diffusion.errors import RoutingError

NEVER = -(1 << 62)  # before every time
FOREVER = 1 << 62  # after every time


@dataclass(frozen=True, slots=True)
class StreamProfile:
    """What a router knows of one stream.

    >>> StreamProfile("calls", window=60_000, rate=0.4, selectivity=(1.0, 0.01)).rows_in_window
    24000.0
    """

    name: str
    window: int  # W_i, inclusive
    rate: float = 1.0  # rows per time unit
    selectivity: tuple[float, ...] = ()  # [k]: share of pairs with a row of stream k that match
    row_bytes: int = 100

    @property
    def rows_in_window(self) -> float:
        """Rows that the window holds on average."""
        return self.rate * self.window

    def selectivity_with(self, stream: int) -> float:
        """Share of the pairs with a row of ``stream`` that match; 1 where nothing is known."""
        return self.selectivity[stream] if stream < len(self.selectivity) else 1.0


class Segment(NamedTuple):
    """The rows of one stream in ``[start, stop)``: the unit of routing."""

    stream: int
    start: int
    stop: int
    rows: int = 0
    bytes: int = 0


def check_profiles(profiles: Sequence[StreamProfile]) -> tuple[StreamProfile, ...]:
    """The profiles as a tuple, once they make sense.

    >>> check_profiles([StreamProfile("a", 5), StreamProfile("b", -1)])
    Traceback (most recent call last):
    ...
    windjoin.diffusion.errors.RoutingError: window of stream 'b' is -1; it must be >= 0
    """
    if len(profiles) < 2:
        raise RoutingError(f"a join needs at least 2 streams, got {len(profiles)}")
    for profile in profiles:
        if profile.window < 0:
            raise RoutingError(
                f"window of stream {profile.name!r} is {profile.window}; it must be >= 0"
            )
        if not 0 <= profile.rate < float("inf"):
            raise RoutingError(
                f"rate of stream {profile.name!r} is {profile.rate}; it must be finite and >= 0"
            )
    return tuple(profiles)
