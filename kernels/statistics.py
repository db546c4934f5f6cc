"""How many rows a predicate keeps: estimated from small samples, before anything is joined.

Predicates are known by their places in the query, so what was measured of some rows may serve for
others of the same query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.spec import (
    Between,
    BytesColumn,
    Compare,
    Equal,
    JoinSpec,
    NotEqual,
    Operator,
    Predicate,
    Rows,
)

SAMPLE_ROWS = 1024
JOINT_ROWS = 256  # of each stream; all pairs of them are looked at
DERIVED_SHARE = 0.01  # of pairs for which an equality holds that only follows from others


@dataclass(frozen=True)
class ItemCounts:
    """Of the sets that a similarity compares: items on average, and what two have in common."""

    left: float
    right: float
    common: float
    alone: bool  # no set seen has more than one


@dataclass(frozen=True)
class Statistics:
    """Rates in rows per time unit, and the share of pairs each predicate lets pass."""

    rows: tuple[int, ...]
    rates: tuple[float, ...]
    selectivity: dict[int, float]  # by place of the predicate
    joint: dict[frozenset[int], float] = field(default_factory=dict)  # of several at once
    items: dict[int, ItemCounts] = field(default_factory=dict)  # by place of similarities of sets
    # by place of similarities with bounds: of the pairs in a window those that they leave open
    compared: dict[int, float] = field(default_factory=dict)

    def share(self, predicate: Predicate) -> float:
        """Share of pairs inside the windows that ``predicate`` lets pass."""
        return self.selectivity.get(predicate.place, predicate.usual_share)

    def share_of(self, predicates: Iterable[Predicate]) -> float:
        """Share that passes all of them: as seen together, else as if they had no relation."""
        left = {p.place: p for p in predicates}
        share = 1.0
        for together, seen in self.joint.items():
            if together <= left.keys():
                share *= seen
                left = {place: p for place, p in left.items() if place not in together}
        for p in left.values():
            share *= self.share(p)
        return share


def unseen(spec: JoinSpec) -> Statistics:
    """Before the first row: all streams alike, every predicate as its kind usually is."""
    n = len(spec.streams)
    widest = max(max(stream.window for stream in spec.streams), 1)
    return Statistics((0,) * n, (1000.0 / widest,) * n, {})


def measure(spec: JoinSpec, rows: list[Rows], ordered: bool = False) -> Statistics:
    """Look at up to SAMPLE_ROWS evenly spread rows of every stream; ordered: by time."""
    rates = []
    for stream in rows:
        ends = stream.time[[0, -1]] if ordered and len(stream) else stream.time
        span = int(ends.max()) - int(ends.min()) if len(stream) else 0
        rates.append(len(stream) / max(span, 1))
    samples = [
        _spread(len(stream), stream.usable, number / len(rows))
        for number, stream in enumerate(rows)
    ]
    selectivity = {}
    for predicate in spec.predicates:
        share = _share(predicate, rows, samples)
        if share is not None:
            selectivity[predicate.place] = share
    sizes = tuple(len(stream) for stream in rows)
    return Statistics(sizes, tuple(rates), selectivity, _joint_shares(spec, rows, samples))


def _spread(n: int, usable: NDArray[np.bool_] | None, phase: float) -> NDArray[np.int64]:
    """Row numbers spread evenly; a prime stride would hide periods no better.

    phase: of a stride, 0 to 1; of two streams of one table other rows are looked at, as a row has
    everything in common with itself
    """
    count = min(n, SAMPLE_ROWS)
    at = np.arange(count, dtype=np.int64)
    if n > count:
        at = at * (n - 1) // (count - 1)
        at[:-1] += int(phase * ((n - 1) // (count - 1)))
    return at if usable is None else at[usable[at]]


def _share(
    predicate: Predicate, rows: list[Rows], samples: list[NDArray[np.int64]]
) -> float | None:
    sampled = SHARES.get(type(predicate))
    return None if sampled is None else sampled(predicate, rows, samples)


def _share_equal(
    p: Equal | NotEqual, rows: list[Rows], samples: list[NDArray[np.int64]]
) -> float | None:
    left, right = (
        _key_sample(rows[key.stream].keys[key.key], samples[key.stream]) for key in p.keys_read
    )
    return _equal_share(left, right)


def _share_unequal(p: NotEqual, rows: list[Rows], samples: list[NDArray[np.int64]]) -> float | None:
    equal = _share_equal(p, rows, samples)
    return None if equal is None else 1.0 - equal


def _share_ordered(
    p: Compare | Between, rows: list[Rows], samples: list[NDArray[np.int64]]
) -> float | None:
    x, y = (
        rows[side.stream].columns[side.column][samples[side.stream]] for side in p.operands_read
    )
    if not len(x) or not len(y):
        return None
    # sorted ones are looked for in one sweep
    hits = _ordered_hits(p, np.sort(x), np.sort(y))
    return max(hits, 0.5) / (len(x) * len(y))


# kinds of predicates whose share a sample of columns tells; of others it is the usual one
SHARES: dict[type[Predicate], Callable[[Any, list[Rows], list[Any]], float | None]] = {
    Equal: _share_equal,
    NotEqual: _share_unequal,
    Compare: _share_ordered,
    Between: _share_ordered,
}


def _key_sample(column: Any, sample: NDArray[np.int64]) -> NDArray[Any]:
    if isinstance(column, BytesColumn):
        text: Any = column.data.tobytes() if len(column.data) < 1 << 16 else column.data
        return np.array(
            [bytes(text[column.offsets[i] : column.offsets[i + 1]]) for i in sample], dtype=object
        )
    values: NDArray[Any] = column[sample]
    return values


def _equal_share(left: NDArray[Any], right: NDArray[Any]) -> float | None:
    if not len(left) or not len(right):
        return None
    asked, ordered = np.sort(left), np.sort(right)
    ends = np.searchsorted(ordered, asked, "right"), np.searchsorted(ordered, asked, "left")
    hits = float((ends[0] - ends[1]).sum())
    return max(hits, 0.5) / (len(left) * len(right))


def _ordered_hits(predicate: Compare | Between, x: NDArray[Any], ordered: NDArray[Any]) -> float:
    """Pairs (x, y) that pass, both sorted."""
    n = len(ordered)
    if isinstance(predicate, Between):
        wide = x.astype(np.float64)
        with np.errstate(all="ignore"):  # infinity is as good an end as any
            low = np.searchsorted(ordered, wide - predicate.high, "left")
            high = np.searchsorted(ordered, wide - predicate.low, "right")
        return float(np.maximum(high - low, 0).sum())
    if predicate.operator in ("<", ">="):
        after = np.searchsorted(ordered, x, "right")  # y > x lies from here on
        return float((n - after if predicate.operator == "<" else after).sum())
    if predicate.operator in ("<=", ">"):
        after = np.searchsorted(ordered, x, "left")
        return float((n - after if predicate.operator == "<=" else after).sum())
    return len(x) * n - float(
        (np.searchsorted(ordered, x, "right") - np.searchsorted(ordered, x, "left")).sum()
    )


def _joint_shares(
    spec: JoinSpec, rows: list[Rows], samples: list[NDArray[np.int64]]
) -> dict[frozenset[int], float]:
    """What passes all comparisons of a pair of streams: the ends of an interval go together."""
    shares = {}
    for pair in combinations(range(len(rows)), 2):
        found = [
            p
            for p in spec.predicates
            if isinstance(p, (Compare, Between)) and {p.left.stream, p.right.stream} == set(pair)
        ]
        few = [sample[:: max(len(sample) // JOINT_ROWS, 1)] for sample in samples]
        if len(found) > 1 and all(len(few[s]) for s in pair):
            passed = np.logical_and.reduce([_passed(p, rows, few) for p in found])
            shares[frozenset(p.place for p in found)] = max(float(passed.mean()), 0.5 / passed.size)
    return shares


def _passed(
    predicate: Compare | Between, rows: Sequence[Rows], samples: list[NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """Which pairs of the samples pass, by row of the stream that comes first."""
    left, right = (
        rows[o.stream].columns[o.column][samples[o.stream]]
        for o in (predicate.left, predicate.right)
    )
    with np.errstate(all="ignore"):
        if isinstance(predicate, Between):
            gap = np.subtract.outer(left.astype(np.float64), right.astype(np.float64))
            passed = (gap >= predicate.low) & (gap <= predicate.high)
        else:
            passed = _COMPARED[predicate.operator].outer(left, right)
    return passed if predicate.left.stream < predicate.right.stream else passed.T


_COMPARED: dict[Operator, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "!=": np.not_equal,
}
