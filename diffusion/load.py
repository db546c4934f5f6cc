"""How loaded is a host, with the work that is assigned but not yet reported.

Gu, Yu, Wang 2007, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", eq. 1:
``w = w_cpu * phi_cpu + w_memory * phi_memory + w_network * phi_network`` with ``phi = usage /
capacity``.  Work assigned since is added to the usage that a host reported last, so that segments
routed between two reports do not all land on one host.  Amounts of work are integers: their sums do
not depend on the order of adding, hence a restored book decides as the saved one would have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.diffusion.errors import RoutingError
from windjoin.diffusion.segments import FOREVER
from windjoin.pyx.routing.work import WorkBook

MAX_HOSTS = 4096


@dataclass(frozen=True, slots=True)
class Host:
    """A numbered slot and what it can do.  Only ratios between hosts matter."""

    number: int
    cpu: float = 1.0  # rows per time unit
    memory: float = 1e9  # bytes
    network: float = 1e9  # bytes per time unit


@dataclass(frozen=True, slots=True)
class Usage:
    """What a host reports, in the units of `Host`."""

    cpu: float = 0.0
    memory: float = 0.0
    network: float = 0.0


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of equation 1.

    >>> Weights(cpu=0.5, memory=0.5, network=0.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    windjoin.diffusion.errors.RoutingError: load weights (0.5, 0.5, 0.5) sum to 1.5; ...
    """

    cpu: float = 0.5
    memory: float = 0.25
    network: float = 0.25

    def __post_init__(self) -> None:
        values = (self.cpu, self.memory, self.network)
        if min(values) < 0:
            raise RoutingError(f"load weights {values} must not be negative")
        if abs(sum(values) - 1) > 1e-9:
            raise RoutingError(f"load weights {values} sum to {sum(values):g}; they must sum to 1")


class LoadBook:
    """The load of every host, reported and in flight.

    >>> book = LoadBook([Host(0), Host(1)], span=10)
    >>> book.assign([0], rows=5, bytes=500, due=0)
    >>> book.least_loaded(1)
    [1]
    """

    def __init__(self, hosts: Sequence[Host], *, span: int, weights: Weights | None = None) -> None:
        if span < 1:
            raise RoutingError(f"span is {span}; it must be at least 1")
        self.weights = weights or Weights()
        self.span = span  # work in flight is spread over one segment
        self._hosts: dict[int, Host] = {}
        self._usage: dict[int, Usage] = {}
        self._closed: set[int] = set()  # no new work: leaving
        self._open: list[int] = []  # the others, ascending
        self._numbers: tuple[int, ...] = ()
        self._tried: set[int] = set()  # hosts that are to get work once
        self._work = WorkBook()
        for host in hosts:
            self.add(host)
        if not self._hosts:
            raise RoutingError("a router needs at least 1 host, got 0")

    # -- who is there ------------------------------------------------------------------------

    @property
    def hosts(self) -> list[Host]:
        """All hosts that hold or may get work, by number."""
        return [self._hosts[number] for number in self._numbers]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Their numbers, ascending; the same tuple as long as they are the same hosts."""
        return self._numbers

    @property
    def open_hosts(self) -> list[int]:
        """Numbers of the hosts that may get new work."""
        return self._open

    @property
    def size(self) -> int:
        """One more than the highest host number seen: the length of all per-host arrays."""
        return self._work.size

    def add(self, host: Host) -> None:
        """A host joins."""
        if not 0 <= host.number < MAX_HOSTS:
            raise RoutingError(f"host number {host.number} is outside 0 .. {MAX_HOSTS - 1}")
        if host.number in self._hosts:
            raise RoutingError(f"host {host.number} is there already")
        if min(host.cpu, host.memory, host.network) <= 0:
            raise RoutingError(f"host {host.number} has a capacity that is not positive: {host}")
        if host.number >= self.size:
            self._work.grow(host.number + 1)
        self._hosts[host.number] = host
        self._closed.discard(host.number)
        self._reopen()
        self._work.start(host.number, *self._head_start(host), *self._prices(host))
        self._rebase(host.number, Usage())

    def require(self, number: int) -> Host:
        """The host of that number, or an error that says which there are."""
        if number not in self._hosts:
            raise RoutingError(f"there is no host {number}; there are {sorted(self._hosts)}")
        return self._hosts[number]

    def close(self, number: int) -> None:
        """No new work for this host."""
        self.require(number)
        if self.open_hosts == [number]:
            raise RoutingError(f"host {number} is the last one that takes work; add another first")
        self._closed.add(number)
        self._reopen()

    def remove(self, number: int) -> None:
        """The host is gone."""
        self.require(number)
        self._work.cover(FOREVER, [number])
        del self._hosts[number]
        self._tried.discard(number)
        self._closed.discard(number)
        self._usage.pop(number, None)
        self._reopen()
        self._work.set_base(number, np.inf)

    # -- how loaded --------------------------------------------------------------------------

    def assign(self, hosts: Iterable[int], *, rows: int, bytes: int, due: int) -> None:
        """Every one of ``hosts`` gets that much work, which its usage shows from ``due`` on."""
        given = tuple(hosts)
        self._work.assign(given, rows, bytes, due)
        if self._tried:
            for number in self._tried.intersection(given):
                self._tried.discard(number)
                self._work.charge(number, *self._prices(self._hosts[number]))

    def report(self, usage: Mapping[int, Usage], *, now: int) -> None:
        """Hosts said what they use; work of theirs that was due by ``now`` is part of it."""
        for number, used in usage.items():
            self.require(number)
            if used.cpu < 0 or used.memory < 0 or used.network < 0:
                raise RoutingError(f"host {number} reports a negative usage: {used}")
        for number, used in usage.items():
            self._rebase(number, used)
        self._work.cover(now, usage)

    def calibrate(self, host: Host, *, tried: Host | None = None) -> None:
        """What a host can do was measured; its usage is in the same units from now on.

        tried: what it counts as until it has been given work once, to see whether it has recovered
        """
        if min(host.cpu, host.memory, host.network) <= 0:
            raise RoutingError(f"host {host.number} has a capacity that is not positive: {host}")
        self.require(host.number)
        self._hosts[host.number] = host
        if tried is not None:
            self._tried.add(host.number)
        if tried is not None or host.number not in self._tried:
            self._work.charge(host.number, *self._prices(tried or host))

    def spread(self, span: int) -> None:
        """Work in flight is spread over segments of another length from now on."""
        self.span = span
        for number, host in self._hosts.items():
            self._work.charge(number, *self._prices(host))

    def settle(self, now: int) -> None:
        """Work due by ``now`` need not be kept apart any more: the next report covers all of it."""
        self._work.settle(now)

    def loads(self, rows: int = 0) -> NDArray[np.float64]:
        """Equation 1 per host number, work in flight included; infinite where there is no host.

        ``rows``: as if each had as many more, against what the fastest would need for them.
        """
        return self._work.loads(rows)

    def reported(self, number: int) -> float:
        """Equation 1 as a host reported it last, without what is in flight."""
        host, weights, used = self.require(number), self.weights, self._usage[number]
        return (
            weights.cpu * used.cpu / host.cpu
            + weights.memory * used.memory / host.memory
            + weights.network * used.network / host.network
        )

    def least_with(self, *, rows: int, bytes: int) -> int:
        """The open host that is least loaded once it has that much more work."""
        return self._work.least(self.open_hosts, rows, bytes)

    def least_loaded(self, count: int) -> list[int]:
        """Up to ``count`` open hosts, least loaded first, ties to the lowest number."""
        hosts = self.open_hosts
        if count == 1:
            return [self._work.least(hosts)]
        return [hosts[i] for i in np.argsort(self.loads()[hosts], kind="stable")[:count].tolist()]

    # -- plain data --------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything as JSON-able data."""
        return {
            "span": self.span,
            "weights": [self.weights.cpu, self.weights.memory, self.weights.network],
            "hosts": [[h.number, h.cpu, h.memory, h.network] for h in self.hosts],
            "usage": [[n, u.cpu, u.memory, u.network] for n, u in sorted(self._usage.items())],
            "closed": sorted(self._closed),
            "overdue": self._work.dump(),
            "pending": [[due, list(hosts), r, b] for due, hosts, r, b in self._work.pending],
            "size": self.size,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LoadBook:
        """The book that `state` described."""
        hosts = [Host(*values) for values in state["hosts"]]
        book = cls(hosts, span=state["span"], weights=Weights(*state["weights"]))
        book._work.grow(state["size"])
        for number, *values in state["usage"]:
            book._rebase(number, Usage(*values))
        book._closed = set(state["closed"])
        book._reopen()
        book._work.fill(state["overdue"])
        for due, targets, rows, n_bytes in state["pending"]:
            book.assign(targets, rows=rows, bytes=n_bytes, due=due)
        return book

    # -- helpers -----------------------------------------------------------------------------

    def _head_start(self, host: Host) -> tuple[int, int]:
        """Where hosts never report, work adds up; who joins must not get all work to make up."""
        others = [number for number in self._open if number != host.number]
        if not others:
            return 0, 0
        least = min(others, key=lambda number: (self._work.overdue_of(number)[0], number))
        ratio = host.cpu / self._hosts[least].cpu
        rows, n_bytes = self._work.overdue_of(least)
        return int(rows * ratio), int(n_bytes * ratio)

    def _reopen(self) -> None:
        self._numbers = tuple(sorted(self._hosts))
        self._open = [number for number in self._numbers if number not in self._closed]

    def _rebase(self, number: int, used: Usage) -> None:
        self._usage[number] = used
        self._work.set_base(number, self.reported(number))

    def _prices(self, host: Host) -> tuple[float, float]:
        """What a row, and a byte, in flight loads a host."""
        weights = self.weights
        per_row = weights.cpu / (host.cpu * self.span)
        return per_row, weights.memory / host.memory + weights.network / (host.network * self.span)
