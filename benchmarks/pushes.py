"""An endless pair of streams, batch by batch, without the cost of making new random rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.generators import I64

SPACING = 500  # microseconds between the rows of one stream: 2,000 rows a second
POOL = 1 << 18

Batch = dict[str, I64]


def endless(batch: int, keys: int, seed: int = 7) -> Iterator[tuple[str, Batch]]:
    """Give batches of streams a and b in turn, times rising, keys uniform; never ends.

    >>> pushes = endless(2, 10)
    >>> [(name, rows["ts"].tolist()) for name, rows in (next(pushes), next(pushes), next(pushes))]
    [('a', [0, 500]), ('b', [0, 500]), ('a', [1000, 1500])]
    """
    random = np.random.default_rng(seed)
    pools = {name: random.integers(0, keys, POOL + batch) for name in "ab"}
    steps = np.arange(batch, dtype=np.int64) * SPACING
    first = 0
    while True:
        # another stretch of the pool on every round: 7919 rows further, a prime
        start = (first + first // POOL * 7919) % POOL
        for name in "ab":
            yield name, {"ts": steps + first * SPACING, "k": pools[name][start : start + batch]}
        first += batch
