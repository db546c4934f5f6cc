"""How long should segments be?  Longer replicate less, shorter balance better: climb the hill.

A length is judged by the throughput of segments that were planned after it was chosen: what was
planned before says nothing of it.  From the best length so far a longer one is tried, then a
shorter one, by ever smaller steps, the first of them a factor of 4: what is replicated, and what
segments cost by themselves, falls with one over their length (equation 2), so that lengths that
are far from the best cost much, and those near it hardly anything.  No length is tried twice.
Where neither is better the search settles, and wakes when the throughput becomes another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from windjoin.diffusion.errors import RoutingError

FIRST_STEP, LAST_STEP = 4.0, 1.3  # times as long; the smallest step is the last one
BETTER = 1.03  # times the best throughput so far; what differs by less is equal
OTHER = 1.5  # times the throughput it settled at: something has changed
READINGS = 2  # at least, for a judgement
WAKES = 8  # readings in a row that differ


@dataclass(slots=True)
class HillClimber:
    """Proposes lengths, judges them by what is measured, settles, and wakes.

    >>> climber = HillClimber(length=100, shortest=10, longest=1000)
    >>> lengths = []
    >>> for border in range(0, 300_000, 1000):
    ...     before = climber.length
    ...     lengths.append(climber.observe(1000.0 - abs(before - 300), border))
    ...     if climber.length != before:
    ...         climber.wait_until(border + 1000)
    >>> 250 <= lengths[-1] <= 360 and lengths[-1] == lengths[-50]
    True
    """

    length: int
    shortest: int
    longest: int
    best: int = 0  # length, and what was measured with it
    best_throughput: float | None = None
    step: float = FIRST_STEP
    direction: int = 1
    tried: int = 0  # directions from the best length that were no better
    known: list[int] = field(default_factory=list)  # lengths that were judged
    settled: bool = False
    ready: int | None = None  # from this border on, what is measured is of the present length
    since: int = 0  # the border of the first reading
    readings: list[float] = field(default_factory=list)
    odd: int = 0  # readings in a row that are unlike what it settled at

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.length <= self.longest:
            raise RoutingError(
                f"segment length {self.length} is outside {self.shortest} .. {self.longest}"
            )
        self.best = self.best or self.length

    def wait_until(self, border: int) -> None:
        """The length was changed; segments that were planned with it are at work from there on."""
        self.ready = border
        self.readings = []

    def observe(self, throughput: float, border: int) -> int:
        """So much was done of late; returns the length that segments should have from now on."""
        if self.ready is not None and border < self.ready:
            return self.length
        if self.settled:
            return self._watch(throughput)
        if not self.readings:
            self.since = border
        self.readings.append(throughput)
        if len(self.readings) < READINGS or border < self.since + 2 * self.length:
            return self.length
        self._judge(median(self.readings))
        self.readings = []
        return self.length

    def _judge(self, throughput: float) -> None:
        self.known.append(self.length)
        if self.best_throughput is None:  # of the length it began with
            self.best_throughput = throughput
        elif throughput > BETTER * self.best_throughput:
            self.best, self.best_throughput, self.tried = self.length, throughput, 0
        else:
            self.tried += 1
            self.direction = -self.direction
        self.length = self._next()

    def _next(self) -> int:
        while not self.settled:
            if self.tried >= 2:
                self.step, self.tried = self.step**0.5, 0
                self.settled = self.step < LAST_STEP
                continue
            wanted = round(self.best * self.step**self.direction)
            length = min(max(wanted, self.shortest), self.longest)
            if length not in self.known:
                return length
            self.tried += 1
            self.direction = -self.direction
        return self.best

    def _watch(self, throughput: float) -> int:
        """Settled: begin again if what is measured has become another."""
        usual = self.best_throughput or 0.0
        unlike = throughput > OTHER * usual or throughput * OTHER < usual
        self.odd = self.odd + 1 if unlike else 0
        if self.odd >= WAKES:
            self.settled, self.odd, self.step, self.tried = False, 0, FIRST_STEP, 0
            self.best_throughput, self.known = None, []
        return self.length

    @classmethod
    def around(cls, length: int, longest: int) -> HillClimber:
        """From a sixteenth of the given length to ``longest``, or the given one if that is more."""
        return cls(length, max(1, length // 16), max(length, longest))

    def state(self) -> dict[str, Any]:
        """As JSON-able data; `from_state` is the way back."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> HillClimber:
        """The climber that `state` described."""
        return cls(**state)
