"""What a cluster was like over time: samples, rarer the longer it runs, and latencies."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.diffusion.arrays import I64
from windjoin.diffusion.router import Router

MOST_SAMPLES = 512
MOST_MARKS = 8192  # pushes of a stream whose times are known
PER_DECADE, DECADES, LEAST = 40, 9, 1e-6  # latencies from a microsecond to a quarter of an hour


@dataclass(frozen=True, slots=True)
class LoadSample:
    """One moment: seconds since the start, and what was so."""

    seconds: float
    loads: dict[int, float]  # by host, equation 1 as measured
    shares: dict[int, float]  # of the rows stored since the sample before
    segment: int
    master: str | None
    borders: list[list[int]]  # ring: by stream, ages at which slices begin
    results: int  # so far
    latency: float  # seconds, of 99 % of the results so far


@dataclass(slots=True)
class History:
    """A bounded number of samples, evenly over the whole run."""

    samples: list[LoadSample] = field(default_factory=list)
    began: float = field(default_factory=perf_counter)
    _every: float = 0.0
    _stored: dict[int, int] = field(default_factory=dict)

    def add(
        self,
        router: Router,
        shift: int,
        stored: dict[int, int],
        results: int,
        latencies: Latencies,
    ) -> None:
        """Take a sample, unless the last one is too young."""
        seconds = perf_counter() - self.began
        if self.samples and seconds - self.samples[-1].seconds < self._every:
            return
        fresh = {host: rows - self._stored.get(host, 0) for host, rows in stored.items()}
        total = max(sum(fresh.values()), 1)
        self._stored = dict(stored)
        master = getattr(router, "master", None)
        self.samples.append(
            LoadSample(
                seconds,
                {n: router.book.reported(n) for n in router.book.numbers},
                {host: rows / total for host, rows in fresh.items()},
                router.segment_length << shift,
                None if master is None else router.profiles[master].name,
                [list(ages) for ages in getattr(router, "ages", [])],
                results,
                latencies.percentile(0.99),
            )
        )
        if len(self.samples) > MOST_SAMPLES:
            del self.samples[1::2]
            self._every = max(2 * self._every, seconds / MOST_SAMPLES)


class Latencies:
    """From the push that brought the last member of a result to the call that returned it.

    >>> latencies = Latencies(1)
    >>> latencies.pushed(0, 0, 5.0)
    >>> latencies.left([np.array([0, 1])], 5.25)
    >>> 0.2 < latencies.percentile(0.5) < 0.3  # as exactly as its bins are
    True
    """

    def __init__(self, streams: int) -> None:
        self._first = [array("q") for _ in range(streams)]  # row of each push
        self._when = [array("d") for _ in range(streams)]
        self.counts: NDArray[np.int64] = np.zeros(PER_DECADE * DECADES + 1, np.int64)

    def pushed(self, stream: int, row: int, now: float) -> None:
        """Rows from this one on came now."""
        first, when = self._first[stream], self._when[stream]
        first.append(row)
        when.append(now)
        if len(first) > MOST_MARKS:
            del first[: MOST_MARKS // 2], when[: MOST_MARKS // 2]

    def renumber(self, stream: int, numbers: Callable[[I64], I64]) -> None:
        """Rows of a stream have other numbers, in the same order."""
        self._first[stream] = array("q", numbers(np.array(self._first[stream])).tolist())

    def left(self, rows: Sequence[I64], now: float) -> None:
        """Results, by the rows of their members, left now."""
        if not len(rows[0]):
            return
        came = np.zeros(len(rows[0]))
        for stream, members in enumerate(rows):
            first, when = self._first[stream], self._when[stream]
            if first:
                at = np.searchsorted(np.array(first), members, side="right") - 1
                came = np.maximum(came, np.array(when)[np.maximum(at, 0)])
        waited = np.maximum(now - came, LEAST)
        bins = (np.log10(waited / LEAST) * PER_DECADE).astype(np.int64)
        self.counts += np.bincount(
            np.clip(bins, 0, len(self.counts) - 1), minlength=len(self.counts)
        )

    def percentile(self, share: float) -> float:
        """Seconds that that share of the results took at most; 0 if there were none."""
        total = int(self.counts.sum())
        if not total:
            return 0.0
        at = bisect_left(np.cumsum(self.counts).tolist(), max(share * total, 1))
        return float(LEAST * 10 ** ((at + 0.5) / PER_DECADE))

    def as_data(self) -> dict[str, Any]:
        """p50, p95 and p99 in seconds."""
        return {f"p{round(100 * s)}": self.percentile(s) for s in (0.5, 0.95, 0.99)}
