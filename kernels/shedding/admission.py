"""Rows that are dropped at random on their way in: which, how many, and what that costs.

That is the baseline of shedding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from windjoin.kernels.shedding.recall import Missed
from windjoin.kernels.spec import F64, I64, Bools
from windjoin.pyx.live.shedder import draws

LEAST = 0.02  # of the rows are always taken
APART = 0.01  # a share that differs by less is the same
SALT = 0x5EED


class Admission:
    """Which share of the rows of all streams is taken, now and when older rows came."""

    def __init__(self, streams: int, seed: int) -> None:
        self.share = 1.0
        self.dropped = [0] * streams
        self.missed = Missed()
        self.left_out = Missed()  # comparisons
        self._seed = seed ^ SALT
        self._firsts: list[list[int]] = [[0] for _ in range(streams)]  # rows from which on
        self._shares: list[list[float]] = [[1.0] for _ in range(streams)]  # so many were taken

    @property
    def drops(self) -> bool:
        """Whether rows of the windows may have been dropped."""
        return self.share < 1 or any(min(shares) < 1 for shares in self._shares)

    def take(self, share: float, tails: Sequence[int]) -> None:
        """From now on this share of the rows; ``tails``: the next row of every stream."""
        share = min(max(share, LEAST), 1.0)
        if share < 1 and abs(share - self.share) < APART * self.share:
            return
        self.share = share
        for tail, firsts, shares in zip(tails, self._firsts, self._shares, strict=True):
            if firsts[-1] == tail:
                shares[-1] = share
            elif shares[-1] != share:
                firsts.append(tail)
                shares.append(share)

    def expire(self, heads: Sequence[int]) -> None:
        """Rows before these are not in the windows any more."""
        for head, firsts, shares in zip(heads, self._firsts, self._shares, strict=True):
            while len(firsts) > 1 and firsts[1] <= head:
                del firsts[0], shares[0]

    def choose(self, stream: int, first: int, n: int, usable: Bools | None) -> Bools | None:
        """Those of the next n rows that are taken, of the usable ones; None: all."""
        if self.share >= 1:
            return usable
        taken = draws(self._seed, stream, first, n, self.share)
        both = taken if usable is None else taken & usable
        self.dropped[stream] += (n if usable is None else int(usable.sum())) - int(both.sum())
        return both

    def weigh(self, found: Sequence[I64], compared: int) -> None:
        """New results, each of which stands for some that dropped rows would have had.

        Of the rows that two results share both have them or neither: so the variance is that of
        rows, not of results.
        """
        if not len(found[0]):
            return
        shares = [self._share_of(stream, rows) for stream, rows in enumerate(found)]
        weight = 1.0 / np.prod(shares, axis=0)
        variance = 0.0
        for rows, share in zip(found, shares, strict=True):
            first = int(rows.min())
            sums = np.bincount(rows - first, weight * share)  # of a row's results, if it is taken
            chance = np.ones(len(sums))
            chance[rows - first] = share
            variance += float((sums * sums * (1 - chance) / chance**2).sum())
        self.missed.add(Missed(float((weight - 1).sum()), variance))
        whole = compared * float(weight.mean())
        each = compared / len(weight)
        self.left_out.add(Missed(whole - compared, variance * each * each))

    def _share_of(self, stream: int, rows: I64) -> F64:
        firsts, shares = self._firsts[stream], self._shares[stream]
        at = np.searchsorted(firsts, rows, "right") - 1
        found: F64 = np.array(shares)[np.maximum(at, 0)]
        return found
