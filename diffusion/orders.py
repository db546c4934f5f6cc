"""In which order should the other streams be probed?  Candidates for the search, best first."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray
from windjoin.diffusion.segments import StreamProfile

Order = tuple[int, ...]


def fan_out(profiles: Sequence[StreamProfile], bound: Sequence[int], stream: int) -> float:
    """Rows of ``stream`` in its window that match rows of all bound streams.

    >>> a = StreamProfile("a", window=10, selectivity=(1.0, 0.5))
    >>> b = StreamProfile("b", window=10, rate=2.0, selectivity=(0.5, 1.0))
    >>> fan_out([a, b], [0], 1)
    10.0
    """
    matches = profiles[stream].rows_in_window
    for other in bound:
        matches *= profiles[stream].selectivity_with(other)
    return matches


def travelling(profiles: Sequence[StreamProfile], start: int, order: Order) -> list[float]:
    """Per hop, the partial results that travel there for one row of stream ``start``."""
    factors, bound = [1.0], [start]
    for stream in order[:-1]:
        factors.append(factors[-1] * fan_out(profiles, bound, stream))
        bound.append(stream)
    return factors


def candidate_orders(profiles: Sequence[StreamProfile], start: int, *, at_most: int) -> list[Order]:
    """Up to ``at_most`` probing orders with the fewest expected partial results (beam search).

    >>> few = [StreamProfile("a", 10), StreamProfile("b", 10, 5.0), StreamProfile("c", 10, 1.0)]
    >>> candidate_orders(few, 0, at_most=8)
    [(2, 1), (1, 2)]
    """
    beam: list[tuple[float, float, Order]] = [(0.0, 1.0, ())]
    for _ in range(len(profiles) - 1):
        longer = []
        for total, rows, order in beam:
            for stream in range(len(profiles)):
                if stream != start and stream not in order:
                    matches = rows * fan_out(profiles, (start, *order), stream)
                    longer.append((min(total + matches, inf), matches, (*order, stream)))
        beam = sorted(longer, key=lambda entry: (entry[0], entry[2]))[:at_most]
    return [order for _, _, order in beam]


def search_space(
    profiles: Sequence[StreamProfile], *, at_most: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Candidate orders of all streams, padded with -1; the factors of eq. 3 (Gu et al. 2007)."""
    n = len(profiles)
    candidates = [candidate_orders(profiles, start, at_most=at_most) for start in range(n)]
    most = max(len(orders) for orders in candidates)
    orders = np.full((n, most, n - 1), -1, dtype=np.int32)
    factors = np.zeros((n, most, n - 1))
    for start, mine in enumerate(candidates):
        for position, order in enumerate(mine):
            orders[start, position] = order
            factors[start, position] = travelling(profiles, start, order)
    return orders, factors
