"""Hashes of keys and rows: the same in every process, by whole columns at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.spec import F64, I64, ArrayColumn, BytesColumn, Rows, SetColumn

U64 = NDArray[np.uint64]
LOOKED_AT = 4  # items of a set, numbers of a vector
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so its powers never vanish modulo 2**64


def mix(values: U64) -> U64:
    """Spread every bit over all bits (the finalizer of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def hash_key(column: I64 | F64 | BytesColumn, rows: I64) -> U64:
    """Hashes of a column at ``rows``: equal values have equal hashes.

    >>> hash_key(np.array([7, 8, 7]), np.array([0, 2])).tolist()
    [7191089600892374487, 7191089600892374487]
    """
    if isinstance(column, BytesColumn):
        return mix(_polynomials(column, rows))
    values: Any = column[rows]
    if values.dtype == np.float64:
        values = values + 0.0  # the two zeros are one value
    hashes: U64 = mix(values.view(np.uint64) + BASE)
    return hashes


def hash_rows(rows: Rows, chosen: I64) -> U64:
    """Hashes of all that the kernels know of the rows ``chosen``."""
    total = mix(rows.time[chosen].view(np.uint64) + BASE)
    for column in (*rows.columns, *rows.keys):
        total = mix(total * BASE + hash_key(column, chosen))
    for wide in rows.varlen:
        total = mix(total * BASE + _hash_varlen(wide, chosen))
    return total


def _hash_varlen(column: SetColumn | ArrayColumn, chosen: I64) -> U64:
    """Hashes of lengths and of some contents: enough to tell most rows apart."""
    values = column.items if isinstance(column, SetColumn) else column.values
    starts = column.offsets[chosen]
    lengths = column.offsets[chosen + 1] - starts
    total = mix(lengths.astype(np.uint64) + BASE)
    filled = np.flatnonzero(lengths)
    for number in range(LOOKED_AT):
        places = starts[filled] + number * (lengths[filled] - 1) // (LOOKED_AT - 1)
        some: Any = values if isinstance(values, BytesColumn) else values[places].astype(np.float64)
        at = places if isinstance(values, BytesColumn) else np.arange(len(places))
        total[filled] = mix(total[filled] * BASE + hash_key(some, at))
    return total


def _polynomials(column: BytesColumn, rows: I64) -> U64:
    """Every value as the sum of its bytes times powers of `BASE`, and its length."""
    starts = column.offsets[rows]
    lengths = column.offsets[rows + 1] - starts
    filled = np.flatnonzero(lengths)
    sums = lengths.astype(np.uint64)
    if len(filled):
        spans = lengths[filled]
        before = np.cumsum(spans) - spans
        within = np.arange(int(spans.sum())) - np.repeat(before, spans)
        with np.errstate(over="ignore"):
            powers = np.multiply.accumulate(np.full(int(spans.max()), BASE, np.uint64))
            bytes_ = column.data[np.repeat(starts[filled], spans) + within]
            terms = (bytes_.astype(np.uint64) + np.uint64(1)) * powers[within]
            sums[filled] += np.add.reduceat(terms, before)
    return sums
