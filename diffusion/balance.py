"""Memory of hosts side by side: when groups move, when a host that yields little has to spill.

The memory paper's two adaptations over hosts.  *Lazy-disk*: a host spills when its own memory is
full, and whenever the least used memory falls below ``theta_d`` times the most used, half of the
difference moves, the most productive groups first.  *Active-disk* looks at output rates as well:
where memory is balanced and they differ by more than ``theta_r``, the host with the least rate
spills, to make room for groups that yield more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.errors import RoutingError

F64: TypeAlias = NDArray[np.float64]
ADAPTATIONS = ("lazy", "active", "none")


@dataclass(frozen=True, slots=True)
class HostState:
    """What one host holds and yields."""

    nbytes: float  # in memory
    rate: float  # results per group since the last look


@dataclass(frozen=True, slots=True)
class Relocate:
    """So many bytes of groups are to go from one host to another."""

    source: int
    target: int
    nbytes: float


@dataclass(frozen=True, slots=True)
class SpillNow:
    """A host is to spill so many bytes though its memory is not full."""

    host: int
    nbytes: float


class Balance:
    """Decides for all hosts; ``decide`` is to be called now and then.

    began: seconds; the first decision comes no earlier than a span after it
    theta_d: least over most used memory, below which groups move
    theta_r: most over least output rate, above which a host has to spill
    span: seconds between two decisions, at least
    share: of a host's memory that it is made to spill at a time

    >>> balance = Balance("lazy")
    >>> hosts = {0: HostState(900.0, 1.0), 1: HostState(300.0, 1.0)}
    >>> balance.decide(hosts, now=100.0)
    Relocate(source=0, target=1, nbytes=300.0)
    >>> balance.decide(hosts, now=144.0), balance.decide(hosts, now=145.0) is None
    (None, False)
    """

    def __init__(
        self,
        adaptation: str,
        *,
        began: float = 0.0,
        theta_d: float = 0.8,
        theta_r: float = 2.0,
        span: float = 45.0,
        share: float = 0.3,
    ) -> None:
        if adaptation not in ADAPTATIONS:
            raise RoutingError(f"adaptation {adaptation!r} is none of {ADAPTATIONS}")
        self.adaptation = adaptation
        self.theta_d, self.theta_r, self.span, self.share = theta_d, theta_r, span, share
        self._last = began
        self.forced = 0.0  # bytes that hosts were made to spill

    def due(self, now: float) -> bool:
        """Whether it is time to look: what hosts hold is not for free to know."""
        return self.adaptation != "none" and now - self._last >= self.span

    def decide(
        self, hosts: Mapping[int, HostState], *, now: float, beyond: float = 0.0
    ) -> Relocate | SpillNow | None:
        """What is to be done; ``beyond``: bytes of the query that the hosts have no memory for."""
        if len(hosts) < 2 or not self.due(now):
            return None
        most = max(hosts, key=lambda n: (hosts[n].nbytes, -n))
        least = min(hosts, key=lambda n: (hosts[n].nbytes, n))
        decision: Relocate | SpillNow | None = None
        if hosts[least].nbytes < self.theta_d * hosts[most].nbytes:
            decision = Relocate(most, least, (hosts[most].nbytes - hosts[least].nbytes) / 2)
        elif self.adaptation == "active":
            decision = self._forced(hosts, beyond)
        if decision is not None:
            self._last = now
        return decision

    def _forced(self, hosts: Mapping[int, HostState], beyond: float) -> SpillNow | None:
        poor = min(hosts, key=lambda n: (hosts[n].rate, n))
        rich = max(host.rate for host in hosts.values())
        if rich <= self.theta_r * hosts[poor].rate:
            return None
        room = min(self.share * hosts[poor].nbytes, beyond - self.forced)
        if room <= 0:
            return None
        self.forced += room
        return SpillNow(poor, room)


def most_productive(sizes: F64, results: F64, amount: float) -> I64:
    """Groups to move: the least size over results first, together no larger than ``amount``.

    >>> most_productive(np.array([5.0, 5.0, 0.0, 4.0]), np.array([1.0, 9.0, 0.0, 0.0]), 10).tolist()
    [0, 1]
    """
    there = np.flatnonzero(sizes > 0)
    order = there[np.argsort(sizes[there] / (results[there] + 1.0), kind="stable")]
    chosen, left = [], amount
    for group in order.tolist():
        if sizes[group] <= left:
            chosen.append(group)
            left -= float(sizes[group])
    return np.array(sorted(chosen), np.int64)
