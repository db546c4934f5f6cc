"""What hosts were measured to do, as shares of the time there was: Gu, Yu, Wang 2007, eq. 1.

A host's processor is used as much as it is busy: seconds at work per second that passed, waiting
for a processor included, as a host that has to wait has that much less of one.  How long it is busy
with a row is its **pace**; from it follows how much the work that is on its way will load it.  Both
are seconds, so nothing depends on the unit of the rows' times.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from statistics import median_low

from windjoin.diffusion.load import Host, Usage
from windjoin.diffusion.trials import Trials

READINGS = 3  # of which the middle one counts: a host that was interrupted once is not slow
ALIKE = 1.5  # paces that differ by less are those of equal hosts
SLOW = 2.5  # times the usual pace: such a host may get no work, and is looked at again
MOST = 1e4
LEAST_SECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class Reading:
    """What a host has done since it began, and holds now."""

    busy: float  # seconds at work
    rows: int  # stored, and partial results taken
    sent: int  # bytes
    held: int  # bytes
    waiting: float = 0.0  # seconds of work that has come and waits, if no router counts it


@dataclass(frozen=True, slots=True)
class Measured:
    """How much of each resource a host used, and how much of each there is, per time unit."""

    usage: Usage
    capacity: Host
    tried: Host | None = None  # the capacity until it got work once: to see whether it recovered
    slowed: bool = False  # it was found to be slow just now


@dataclass(slots=True)
class _Pace:
    speed: float  # as it was declared
    last: Reading
    per_row: deque[float] = field(default_factory=lambda: deque(maxlen=READINGS))  # seconds
    uses: deque[float] = field(default_factory=lambda: deque(maxlen=READINGS))  # busy share
    sends: float = 0.0  # bytes per second
    spent: float = 0.0  # seconds since the last look at it began
    slow: float = 1.0  # times the usual pace
    worked: bool = False
    trial: bool = False  # a look at it is due
    slowed: bool = False  # found since the last report


class Meter:
    """Turns readings into loads; the only memory of how fast hosts are.

    bandwidth: bytes per second of each host; None: the most that any was seen to send
    memory: bytes of each host; None: its even share of the machine's
    """

    def __init__(self, *, bandwidth: float | None = None, memory: float | None = None) -> None:
        self._bandwidth, self._memory = bandwidth, memory
        self._most_sent = 1.0
        self._paces: dict[int, _Pace] = {}
        self._trials = Trials()
        self._read_at: float | None = None
        self._rates: list[float] | None = None

    def begin(self, now: float) -> None:
        """Hosts begin to work: what the first readings tell was done since then."""
        if self._read_at is None:
            self._read_at = now

    def rates(self, rows: Sequence[int], ticks: int, window: int) -> list[float]:
        """Rows of each stream per time unit, of late; what is a window ago hardly counts."""
        measured = [count / ticks for count in rows]
        weight = 1.0 if self._rates is None else 1 - exp(-2 * ticks / max(window, 1))
        before = self._rates or measured
        self._rates = [
            old + weight * (new - old) for old, new in zip(before, measured, strict=True)
        ]
        return self._rates

    def pace(self, host: int) -> float:
        """How many times as long as usual a host takes for a row."""
        return self._paces[host].slow if host in self._paces else 1.0

    def forget(self, host: int) -> None:
        """The host is gone."""
        self._paces.pop(host, None)
        self._trials.forget(host)

    def measure(
        self,
        hosts: Sequence[Host],
        readings: Mapping[int, Reading],
        *,
        now: float,
        ticks: float,
        span: float = 1.0,
    ) -> dict[int, Measured]:
        """What hosts used in the ``ticks`` of the router's time since the last call.

        now: seconds, on any clock that goes on
        span: ticks over which work on its way is spread
        """
        since = self._read_at
        self._read_at = now
        for host in hosts:
            if host.number not in self._paces:
                self._paces[host.number] = _Pace(host.cpu, Reading(0.0, 0, 0, 0))
        passed = LEAST_SECONDS if since is None else max(now - since, LEAST_SECONDS)
        present = [host.number for host in hosts if host.number in readings]
        for number in present:
            self._take(self._paces[number], readings[number], passed)
        self._judge(present, now)
        return self._measured(hosts, readings, passed / max(ticks, 1), span)

    def _take(self, pace: _Pace, reading: Reading, passed: float) -> None:
        busy = max(reading.busy - pace.last.busy, 0.0)  # read while it works: off by a blink
        rows = reading.rows - pace.last.rows
        pace.sends = (reading.sent - pace.last.sent) / passed
        self._most_sent = max(self._most_sent, pace.sends)
        if rows and not pace.worked:  # that it had nothing to do tells nothing of now
            pace.uses.clear()
        pace.last, pace.worked = reading, rows > 0
        pace.uses.append(min(busy / passed, 1.0))
        pace.spent += busy
        if rows:
            pace.per_row.append(busy / rows)

    def _judge(self, present: Sequence[int], now: float) -> None:
        """Who is slower than usual; who has rested for long enough counts as usual for once."""
        usual = self._usual()
        if usual is None:
            return
        for number in present:
            pace = self._paces[number]
            if pace.worked:
                self._compare(number, pace, usual, now)
        for number in self._trials.due(now):
            pace = self._paces[number]
            if pace.worked and pace.slow >= SLOW:  # seen to be slow all the time
                self._trials.rest(number, now=now, cost=pace.spent)
                continue
            pace.trial, pace.spent = True, 0.0
            pace.per_row.clear()

    def _compare(self, number: int, pace: _Pace, usual: float, now: float) -> None:
        ratio = median_low(pace.per_row) / max(usual, LEAST_SECONDS) * pace.speed
        if ratio > ALIKE and pace.slow < SLOW and len(pace.per_row) < 2:
            return  # once is not enough to be called slow
        pace.slow = 1.0 if ratio <= ALIKE else min(ratio, MOST)
        if pace.slow >= SLOW:
            if not self._trials.resting(number):
                self._trials.rest(number, now=now, cost=pace.spent)
                pace.slowed = True
        else:
            self._trials.forget(number)
            pace.spent = 0.0

    def _usual(self) -> float | None:
        """Seconds that a host of speed 1 takes for a row."""
        paces = self._paces.values()
        known = [median_low(one.per_row) * one.speed for one in paces if one.per_row]
        return median_low(known) if known else None

    def _measured(
        self, hosts: Sequence[Host], readings: Mapping[int, Reading], per_tick: float, span: float
    ) -> dict[int, Measured]:
        usual = max(self._usual() or LEAST_SECONDS, LEAST_SECONDS)
        memory = self._memory or _memory_of_machine() / max(len(hosts), 1)
        network = (self._bandwidth or self._most_sent) * per_tick  # bytes per tick
        found = {}
        for host in hosts:
            pace = self._paces[host.number]
            rows = max(per_tick / (usual * pace.slow) * pace.speed, LEAST_SECONDS)
            capacity = Host(host.number, rows, memory, max(network, LEAST_SECONDS))
            tried = None
            if pace.trial:
                tried, pace.trial = replace(capacity, cpu=rows * pace.slow), False
            if host.number in readings:
                held = float(readings[host.number].held)
                used = median_low(pace.uses) + readings[host.number].waiting / (span * per_tick)
                usage = Usage(used * rows, held, pace.sends * per_tick)
                found[host.number] = Measured(usage, capacity, tried, pace.slowed)
                pace.slowed = False
        return found


def _memory_of_machine() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
