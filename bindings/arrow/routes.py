"""Where rows go: host numbers by time, by time interval, or by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from windjoin.arrow.hashing import hash_key, hash_rows
from windjoin.diffusion.stretches import EARLIEST, I32, LATEST, Stretch, pieces
from windjoin.kernels.spec import I64, Bools, Rows

U64 = NDArray[np.uint64]


class Copies(NamedTuple):
    """Copies of rows to send: row ``rows[i]`` to host ``hosts[i]``; one row may go to many."""

    rows: I64
    hosts: I32

    def of(self, host: int) -> Copies:
        """Those that go to one host."""
        own = np.flatnonzero(self.hosts == host)
        return Copies(self.rows[own], self.hosts[own])


@dataclass(frozen=True, slots=True)
class ExchangeRoute:
    """Hosts by time: piece p is ``[borders[p], borders[p + 1])``, its hosts a stretch of ``hosts``.

    ``split``: a row goes to one of the hosts of its piece, chosen by its content, not to all.

    >>> route = ExchangeRoute.of([(0, 10, (0,)), (8, 20, (1,))])
    >>> route.copies(np.array([3, 9, 15, 40]), np.arange(4), None)
    Copies(rows=array([0, 1, 1, 2]), hosts=array([0, 0, 1, 1], dtype=int32))
    """

    borders: I64
    offsets: I64
    hosts: I32
    split: bool = False

    @classmethod
    def of(cls, stretches: Sequence[Stretch], *, split: bool = False) -> ExchangeRoute:
        """Of stretches ``low <= t < high`` that may overlap; ends are clipped to int64."""
        return cls(*pieces(stretches), split)

    @classmethod
    def everything_to(cls, *hosts: int) -> ExchangeRoute:
        """Every row to all of ``hosts``."""
        return cls.of([(EARLIEST, LATEST + 1, hosts)])

    def copies(self, times: I64, rows: I64, content: Rows | None) -> Copies:
        """Copies of ``rows``, whose times are ``times``; ``content`` is asked for by ``split``."""
        pieces = np.searchsorted(self.borders, times, "right") - 1
        if self.split and content is not None and bool((np.diff(self.offsets) > 1).any()):
            return self._one_of(pieces, rows, content)
        return _spread(pieces, rows, self.offsets, self.hosts)

    def _one_of(self, pieces: I64, rows: I64, content: Rows) -> Copies:
        """By content and not by position: a repeated task must send a row where it did before."""
        starts = self.offsets[pieces]
        fan = (self.offsets[pieces + 1] - starts).astype(np.uint64)
        alive = np.flatnonzero(fan)
        chosen = (hash_rows(content, rows[alive]) % fan[alive]).astype(np.int64)
        return Copies(rows[alive], self.hosts[starts[alive] + chosen])

    def meeting(self, low: I64, high: I64, began: I64 | None = None) -> Copies:
        """Copies of partial results to every host that has a piece which meets ``[low, high]``."""
        first = np.searchsorted(self.borders, low, "right") - 1
        last = np.searchsorted(self.borders, high, "right") - 1
        ranges, inverse = np.unique(first * len(self.borders) + last, return_inverse=True)
        sets = [self._hosts_of(*divmod(int(code), len(self.borders))) for code in ranges]
        ends = np.cumsum([0, *map(len, sets)]).astype(np.int64)
        flat = np.concatenate(sets) if sets else np.empty(0, np.int32)
        return _spread(inverse.astype(np.int64), np.arange(len(low)), ends, flat)

    def _hosts_of(self, first: int, last: int) -> I32:
        return np.unique(self.hosts[self.offsets[first] : self.offsets[last + 1]])


def _spread(choices: I64, rows: I64, offsets: I64, hosts: I32) -> Copies:
    """Row i to the hosts of choice ``choices[i]``."""
    starts = offsets[choices]
    fan = offsets[choices + 1] - starts
    if bool((fan == 1).all()):
        return Copies(rows, hosts[starts])
    before = np.cumsum(fan) - fan
    within = np.arange(int(fan.sum())) - np.repeat(before, fan)
    return Copies(np.repeat(rows, fan), hosts[np.repeat(starts, fan) + within])


@dataclass(frozen=True, slots=True)
class KeyRoute:
    """Rows with equal keys meet on one host; hot keys are routed by time instead.

    A result has one and the same key in all its rows, so all of them take the same way.
    """

    key: int  # key number of the stream's rows
    hosts: int
    hot: U64  # hashes, ascending
    by_time: ExchangeRoute | None = None

    def copies(self, times: I64, rows: I64, content: Rows) -> Copies:
        """Copies of ``rows``."""
        hashes = hash_key(content.keys[self.key], rows)
        hosts = (hashes % np.uint64(self.hosts)).astype(np.int32)
        if self.by_time is None or not len(self.hot):
            return Copies(rows, hosts)
        hot = self._is_hot(hashes)
        timed = self.by_time.copies(times[hot], rows[hot], content)
        return Copies(
            np.concatenate([rows[~hot], timed.rows]), np.concatenate([hosts[~hot], timed.hosts])
        )

    def _is_hot(self, hashes: U64) -> Bools:
        place = np.minimum(np.searchsorted(self.hot, hashes), len(self.hot) - 1)
        found: Bools = self.hot[place] == hashes
        return found


AnyRoute = ExchangeRoute | KeyRoute
