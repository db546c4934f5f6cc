"""`tally`: how many rows a stream has over time, in one pass and a few bytes.

Bins are ``2**exponent`` ticks wide and start at multiples of their width, so the counts of any two
partitions can be added: the finer ones are made coarser first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from windjoin.arrow.packing import as_schema
from windjoin.arrow.plan import Plan
from windjoin.arrow.segments import arrow_array
from windjoin.diffusion.stretches import EARLIEST, LATEST, Histogram
from windjoin.kernels.spec import I64
from windjoin.times import time_column

MOST_BINS = 4096
TALLY = pa.schema(
    [("stream", pa.int32()), ("exponent", pa.int32()), ("bin", pa.int64()), ("rows", pa.int64())]
)


@dataclass
class TimeCounts:
    """Rows by bin of ``2**exponent`` ticks; ``rows[b]`` is bin ``first + b``.

    >>> counts = TimeCounts(most=4)
    >>> counts.add(np.array([0, 1, 2, 3, 100]))
    >>> counts.exponent, counts.first, counts.rows.tolist()
    (5, 0, [4, 0, 0, 1])
    """

    most: int = MOST_BINS
    exponent: int = 0
    first: int = 0
    rows: I64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, times: I64) -> None:
        """Count more rows."""
        if len(times):
            low, high = int(times.min()), int(times.max())
            self._cover(low >> self.exponent, high >> self.exponent)
            places = (times >> np.int64(self.exponent)) - np.int64(self.first)
            self.rows += np.bincount(places, minlength=len(self.rows))

    def merge(self, exponent: int, bins: I64, rows: I64) -> None:
        """Add the counts of another partition."""
        if not len(bins):
            return
        self._coarsen(exponent)
        shift = self.exponent - exponent
        self._cover(int(bins.min()) >> shift, int(bins.max()) >> shift)
        places = (bins >> np.int64(self.exponent - exponent)) - np.int64(self.first)
        np.add.at(self.rows, places, rows)

    def _coarsen(self, exponent: int) -> None:
        while self.exponent < exponent:
            last = self.first + len(self.rows) - 1
            places = (np.arange(self.first, last + 1) >> 1) - (self.first >> 1)
            self.rows = np.bincount(places, self.rows).astype(np.int64)
            self.first >>= 1
            self.exponent += 1

    def _cover(self, low: int, high: int) -> None:
        """Have bins from ``low`` to ``high``, numbers at the present exponent; coarser if many."""
        start = self.exponent
        while True:
            shift = self.exponent - start
            first, last = low >> shift, high >> shift
            if len(self.rows):
                first, last = min(first, self.first), max(last, self.first + len(self.rows) - 1)
            if last - first < self.most:
                break
            self._coarsen(self.exponent + 1)
        grown = np.zeros(last - first + 1, np.int64)
        if len(self.rows):
            grown[self.first - first : self.first - first + len(self.rows)] = self.rows
        self.first, self.rows = first, grown


def tally(batches: Iterable[pa.RecordBatch], plan: Plan, stream: int) -> Iterator[pa.RecordBatch]:
    """Counts of a partition's rows over time; only the time column is looked at."""
    bound, described = plan.bound, plan.query.streams[stream]
    time = time_column(described, bound.clock, bound.schemas)
    schema = pa.schema([plan.schema(stream).field(described.time)])
    counts = TimeCounts()
    for batch in batches:
        own = as_schema(batch, schema, plan.query.names[stream])
        times, valid = time.read(own.column(0))
        counts.add(_countable(times if valid is None else times[valid]))
    bins = np.flatnonzero(counts.rows)
    columns = [
        np.full(len(bins), stream),
        np.full(len(bins), counts.exponent),
        bins + counts.first,
        counts.rows[bins],
    ]
    arrays = [arrow_array(c, f.type) for c, f in zip(columns, TALLY, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, schema=TALLY)


def _countable(times: NDArray[Any]) -> I64:
    """Times that int64 holds; whether others matter is found when rows are joined."""
    if times.dtype != np.int64:
        times = times[np.asarray((times <= LATEST) & (times >= EARLIEST), np.bool_)]
    return times.astype(np.int64, copy=False)


def histogram(tallied: pa.Table, streams: int) -> Histogram | None:
    """The counts of all partitions of all streams together; None without rows."""
    if not tallied.num_rows:
        return None
    columns = {name: tallied.column(name).to_numpy() for name in TALLY.names}
    parts = []
    for stream in range(streams):
        counts = TimeCounts()
        for exponent in np.unique(columns["exponent"]):
            chosen = (columns["stream"] == stream) & (columns["exponent"] == exponent)
            counts.merge(int(exponent), columns["bin"][chosen], columns["rows"][chosen])
        parts.append(counts)
    return _aligned(parts, streams)


def _aligned(parts: list[TimeCounts], streams: int) -> Histogram:
    """All streams in the same bins."""
    every = TimeCounts()
    for part in parts:
        every.merge(part.exponent, part.first + np.arange(len(part.rows)), part.rows)
    rows = np.zeros((streams, len(every.rows)))
    for stream, part in enumerate(parts):
        bins = part.first + np.arange(len(part.rows))
        places = (bins >> (every.exponent - part.exponent)) - every.first
        np.add.at(rows[stream], places, part.rows)
    return Histogram(every.first << every.exponent, 1 << every.exponent, rows)
