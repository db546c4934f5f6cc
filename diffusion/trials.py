"""Hosts that get no work as they were too slow: when is the next look at them?

Nobody learns that a host has recovered unless it gets some work.  A look costs what the host needs
for that work, so the first comes after four times as long as that, the next after eight times, and
so on: all looks together take a bounded share of the time, however slow the host is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

FIRST, MOST = 4.0, 16.0  # times as long as the last look cost


@dataclass(slots=True)
class _Rest:
    until: float
    factor: float
    looking: bool = False


class Trials:
    """Who rests, and until when; times in seconds.

    >>> trials = Trials()
    >>> trials.rest(3, now=10.0, cost=1.0)
    >>> trials.due(13.0), trials.due(14.5)
    ([], [3])
    >>> trials.rest(3, now=15.0, cost=1.0)  # still slow
    >>> trials.due(22.0), trials.due(23.0)
    ([], [3])
    """

    def __init__(self) -> None:
        self._rests: dict[int, _Rest] = {}

    def rest(self, host: int, *, now: float, cost: float) -> None:
        """The host was found too slow, in a look that took so long."""
        before = self._rests.get(host)
        factor = FIRST if before is None else min(2 * before.factor, MOST)
        self._rests[host] = _Rest(now + factor * cost, factor)

    def due(self, now: float) -> list[int]:
        """Hosts to be looked at now; each is told once."""
        found = [h for h, r in self._rests.items() if not r.looking and r.until <= now]
        for host in found:
            self._rests[host].looking = True
        return sorted(found)

    @property
    def looking(self) -> bool:
        """Whether a look at any of them is under way."""
        return any(rest.looking for rest in self._rests.values())

    def resting(self, host: int) -> bool:
        """Whether the host is to get no work."""
        rest = self._rests.get(host)
        return rest is not None and not rest.looking

    def state(self) -> list[Any]:
        """As JSON-able data; `restore` is the way back, on the same clock."""
        return [[host, asdict(rest)] for host, rest in sorted(self._rests.items())]

    def restore(self, state: list[Any]) -> None:
        """Go on as `state` tells."""
        self._rests = {host: _Rest(**rest) for host, rest in state}

    def forget(self, host: int) -> None:
        """The host has recovered, or is gone."""
        self._rests.pop(host, None)
