"""How long should segments be?  Longer replicate less, shorter balance better: climb the hill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windjoin.diffusion.errors import RoutingError


@dataclass(slots=True)
class HillClimber:
    """Goes on in one direction while measured throughput improves, else turns round.

    >>> climber = HillClimber(length=100, step=10, shortest=10, longest=1000)
    >>> [climber.observe(throughput) for throughput in (5.0, 6.0, 7.0, 6.5)]
    [110, 120, 130, 120]
    """

    length: int
    step: int
    shortest: int
    longest: int
    direction: int = 1
    last: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.length <= self.longest:
            raise RoutingError(
                f"segment length {self.length} is outside {self.shortest} .. {self.longest}"
            )
        if self.step < 1:
            raise RoutingError(f"segment length step is {self.step}; it must be at least 1")

    def observe(self, throughput: float) -> int:
        """The throughput of the present length was measured; returns the length to try next."""
        if self.last is not None and throughput <= self.last:
            self.direction = -self.direction
        self.last = throughput
        tried = self.length + self.direction * self.step
        if not self.shortest <= tried <= self.longest:
            self.direction = -self.direction
        self.length = min(max(tried, self.shortest), self.longest)
        return self.length

    @classmethod
    def around(cls, length: int) -> HillClimber:
        """Steps of a tenth, between a sixteenth and sixteen times the given length."""
        return cls(length, max(1, length // 10), max(1, length // 16), length * 16)

    def state(self) -> dict[str, Any]:
        """As JSON-able data; `from_state` is the way back."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> HillClimber:
        """The climber that `state` described."""
        return cls(**state)
