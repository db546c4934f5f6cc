"""The results of all hosts become one result again.

A host pushes blocks of results, each row with its completion time ``T`` and the arrival number of
the row that completed it, and says from time to time what it will not go below any more: its low
watermark.  The fused watermark is the least of those.  Without order every block leaves at once.
With order, rows leave in ``(T, arrival, host)`` as soon as no host can produce an earlier one; a
host that lags therefore holds back the later rows of the others, a host that left nothing at all.

Blocks stay where they are: what comes out are the caller's own handles and row numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.diffusion.errors import RoutingError
from windjoin.pyx.base.pieces import joined, sorting_by, taken

I64 = NDArray[np.int64]
NEVER, FOREVER = -(2**63), 2**63  # before and after every time


@dataclass(frozen=True, slots=True)
class Fused:
    """Rows that leave: row ``rows[k]`` of ``handles[block[k]]``, for k in order."""

    handles: list[Any]
    block: I64
    rows: I64
    times: I64

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(slots=True)
class _Held:
    handle: Any
    host: int
    times: I64
    arrivals: I64
    rows: I64


class Fusion:
    """Collects blocks of results of many hosts.

    >>> fusion = Fusion([0, 1], ordered=True)
    >>> fusion.push(0, "x", times=np.array([5, 9]), arrivals=np.array([1, 4]))
    >>> fusion.push(1, "y", times=np.array([7]), arrivals=np.array([2]))
    >>> fusion.advance(0, 20)
    >>> len(fusion.pop())  # host 1 may still produce anything
    0
    >>> fusion.advance(1, 8)
    >>> ready = fusion.pop()
    >>> [(ready.handles[b], row) for b, row in zip(ready.block.tolist(), ready.rows.tolist())]
    [('x', 0), ('y', 0)]
    """

    def __init__(self, hosts: Iterable[int], *, ordered: bool) -> None:
        self.ordered = ordered
        self._watermarks: dict[int, int] = dict.fromkeys(hosts, NEVER)
        self._left_at = NEVER  # the watermark once all hosts have left
        self._held: list[_Held] = []

    @property
    def watermark(self) -> int:
        """No result before this time will come any more."""
        return min(self._watermarks.values(), default=self._left_at)

    def add_host(self, host: int, since: int = NEVER) -> None:
        """A host joins; it will produce nothing before ``since``."""
        if host in self._watermarks:
            raise RoutingError(f"host {host} is there already")
        if since < self.watermark:
            raise RoutingError(
                f"host {host} joins with watermark {since}, behind the fused {self.watermark}"
            )
        self._watermarks[host] = since

    def push(self, host: int, handle: Any, *, times: I64, arrivals: I64) -> None:
        """A block of results; ``handle`` is whatever the caller knows it by."""
        self._require(host)
        if len(times) != len(arrivals):
            raise RoutingError(
                f"block of host {host} has {len(times)} times and {len(arrivals)} arrivals"
            )
        if len(times) == 0:
            return
        early = int(np.argmin(times))
        if times[early] < self._watermarks[host]:
            raise RoutingError(
                f"host {host} pushes a result of time {times[early]} (row {early}) after it said "
                f"that none before {self._watermarks[host]} would come"
            )
        self._held.append(_Held(handle, host, times, arrivals, np.arange(len(times))))

    def advance(self, host: int, watermark: int) -> None:
        """The host will push no result before ``watermark``, or has no work until then."""
        self._require(host)
        self._watermarks[host] = max(self._watermarks[host], watermark)

    def remove_host(self, host: int) -> None:
        """The host is gone: nothing waits for it; what it pushed stays."""
        self._require(host)
        left = self._watermarks.pop(host)
        if not self._watermarks:
            self._left_at = max(left, self._left_at)

    def close(self) -> Fused:
        """All hosts are done: everything that is left."""
        for host in self._watermarks:
            self._watermarks[host] = FOREVER
        self._left_at = FOREVER
        return self.pop()

    def pop(self) -> Fused:
        """What may leave now."""
        until = self.watermark if self.ordered else FOREVER
        leaving, staying = [], []
        for held in self._held:
            go = held.times < until
            if go.any():
                leaving.append(_taken(held, go))
            if not go.all():
                staying.append(_taken(held, ~go))
        self._held = staying
        return self._fuse(leaving)

    def state_rows(self) -> int:
        """Rows that wait for a host that lags."""
        return sum(len(held.rows) for held in self._held)

    def _fuse(self, blocks: list[_Held]) -> Fused:
        empty = np.zeros(0, np.int64)
        if not blocks:
            return Fused([], empty, empty, empty)
        lengths = [len(held.rows) for held in blocks]
        number = np.repeat(np.arange(len(blocks)), lengths)
        rows = joined([held.rows for held in blocks])
        times = joined([held.times for held in blocks])
        handles = [held.handle for held in blocks]
        if not self.ordered:
            return Fused(handles, number, rows, times)
        arrivals = joined([held.arrivals for held in blocks])
        hosts = np.repeat([held.host for held in blocks], lengths)
        order = sorting_by([rows, number, hosts, arrivals, times])
        return Fused(handles, taken(number, order), taken(rows, order), taken(times, order))

    def _require(self, host: int) -> None:
        if host not in self._watermarks:
            raise RoutingError(f"there is no host {host}; there are {sorted(self._watermarks)}")


def _taken(held: _Held, which: NDArray[np.bool_]) -> _Held:
    return _Held(held.handle, held.host, held.times[which], held.arrivals[which], held.rows[which])
