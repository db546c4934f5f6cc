"""Which share of the state should a host have, so that all hosts are equally loaded?

Where every row visits every host, a host's pace says nothing of its share: what it costs to be
visited does not shrink with the slice.  So shares follow the loads themselves, a little at a time:
who is loaded more than the others gets less until loads are even, down to nothing, and is looked at
again after a while (`trials`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windjoin.diffusion.trials import Trials

EVEN = 1.3  # times the least load: then nothing is changed
BUSY = 0.25  # load below which nothing is worth a change
FAR = 3.0  # times the others' load: then shares go by the square of that, else by the root
STEP_DOWN, STEP_UP = 0.03, 1.5
LEAST = 0.05  # of its even share; with less a host has nothing
LOOK = 0.1  # what a host gets that is looked at again


@dataclass(slots=True)
class _Share:
    speed: float  # as it was declared
    factor: float = 1.0  # of what its speed would give it
    since: float | None = None  # when its load was last like that of others


class Shares:
    """A weight per host: its speed times what loads have made of it.

    >>> shares = Shares({0: 1.0, 1: 1.0, 2: 1.0})
    >>> shares.follow({0: 0.9, 1: 0.3, 2: 0.3}, now=1.0), shares.weight(0) < shares.weight(1)
    (True, True)
    """

    def __init__(self, speeds: Mapping[int, float]) -> None:
        self._shares: dict[int, _Share] = {}
        self._trials = Trials()
        for host, speed in speeds.items():
            self.add(host, speed)

    def add(self, host: int, speed: float) -> None:
        """A host joins."""
        self._shares[host] = _Share(speed)

    def remove(self, host: int) -> None:
        """A host is gone."""
        self._shares.pop(host, None)
        self._trials.forget(host)
        if not any(share.factor for share in self._shares.values()):
            for other, share in self._shares.items():
                share.factor = 1.0
                self._trials.forget(other)

    def weight(self, host: int) -> float:
        """Its part of the state, against the other hosts' weights; 0 is nothing."""
        share = self._shares[host]
        return share.speed * share.factor

    @property
    def looking(self) -> bool:
        """Whether a host that had nothing is being looked at."""
        return self._trials.looking

    def follow(self, loads: Mapping[int, float], *, now: float) -> bool:
        """Loads were measured; whether weights have changed.

        loads: of hosts that take work, equation 1; ``now``: seconds, on any clock that goes on
        """
        for host in loads:
            if host in self._shares and self._shares[host].since is None:
                self._shares[host].since = now
        active = {h: loads[h] for h in loads if h in self._shares and self._shares[h].factor}
        changed = self._look_again(loads, now)
        if len(active) < 2:
            return changed
        if max(active.values()) < BUSY:
            return self._drift(list(active)) or changed
        if max(active.values()) < EVEN * max(min(active.values()), BUSY / EVEN):
            for host in active:
                self._shares[host].since = now
            return changed
        for host, load in active.items():
            others = (sum(active.values()) - load) / (len(active) - 1)
            step = others / max(load, 1e-9)
            if step > 1 / FAR:
                self._shares[host].since = now
                step = ((others + load) / 2 / max(load, 1e-9)) ** 0.5
            else:  # to be visited costs it as much with a smaller slice
                step *= step
            self._shares[host].factor *= min(max(step, STEP_DOWN), STEP_UP)
        self._balance(list(active), loads, now)
        return True

    def _drift(self, active: list[int]) -> bool:
        """While nobody is busy, towards even shares."""
        below = [self._shares[host] for host in active if self._shares[host].factor < 1]
        for share in below:
            share.factor = min(1.0, share.factor * STEP_UP)
        return bool(below)

    def _balance(self, active: list[int], loads: Mapping[int, float], now: float) -> None:
        """Factors around 1; hosts that would have next to nothing have nothing."""
        most = max(self._shares[host].factor for host in active)
        for host in active:
            share = self._shares[host]
            share.factor /= most
            if share.factor < LEAST:
                share.factor = 0.0
                self._trials.rest(host, now=now, cost=max(now - (share.since or now), 0.0))
            elif share.factor > 2 * LOOK:
                self._trials.forget(host)

    def _look_again(self, loads: Mapping[int, float], now: float) -> bool:
        due = [host for host in self._trials.due(now) if host in self._shares]
        for host in due:
            self._shares[host].factor, self._shares[host].since = LOOK, now
        return bool(due)

    def state(self) -> list[Any]:
        """As JSON-able data; `restore` is the way back.  Hosts that rest do so from then on."""
        return [[host, asdict(share)] for host, share in sorted(self._shares.items())]

    def rests(self) -> list[Any]:
        """Until when hosts rest, for `restore` on the same clock."""
        return self._trials.state()

    def restore(self, state: list[Any], *, now: float, rests: list[Any] | None = None) -> None:
        """The shares that `state` described; hosts rest from now on, or as `rests` told."""
        self._shares = {host: _Share(**share) for host, share in state}
        self._trials = Trials()
        if rests is not None:
            self._trials.restore(rests)
        for host, share in self._shares.items():
            if not share.factor and not self._trials.resting(host):
                self._trials.rest(host, now=now, cost=1.0)
