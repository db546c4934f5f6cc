"""Only the best partners of every row that completes results: ``nearest=k``.

A pair of rows is completed by the later one in the total order (time, stream, arrival).  Of its
partners the k best stay; ties go to the earlier time, then to the earlier arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from windjoin.kernels.side import sortable
from windjoin.kernels.spec import F64, I64, Bools, JoinSpec, Nearest, Similarity
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.pieces import sorting_by, taken
from windjoin.pyx.similarity.measures import measure_pairs

Views = tuple[ColumnView, ColumnView]
DISTANCES = (
    "l2", "l1", "linf", "bytes_l1", "bytes_l2", "mean_abs_diff", "hamming", "hamming_bits",
)  # fmt: skip
COLUMNS = ("left", "right", "time", "partner_time", "late", "cost")  # of candidates


@dataclass(slots=True)
class Candidates:
    """Pairs of rows of stream 0 and stream 1 that the join has found, with scores if asked for."""

    left: I64
    right: I64
    time: I64  # of the row that completes the pair
    partner_time: I64
    late: I64  # stream of the row that completes it
    cost: F64  # least is best
    scores: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, left: I64, right: I64, times: tuple[I64, I64], cost: F64) -> Candidates:
        """Candidates with their times; of equal times the second stream's row is the later."""
        late = (times[1] >= times[0]).astype(np.int64)
        return cls(left, right, np.maximum(*times), np.minimum(*times), late, cost)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def columns(self) -> list[Any]:
        """All there is of them, as `of_columns` takes it."""
        return [*(getattr(self, name) for name in COLUMNS), *self.scores]

    @classmethod
    def of_columns(cls, columns: list[Any]) -> Candidates:
        """Candidates of what `columns` gives."""
        named = dict(zip(COLUMNS, columns, strict=False))
        return cls(**named, scores=columns[len(COLUMNS) :])

    def take(self, at: I64) -> Candidates:
        """Some of them."""
        return self.of_columns([taken(column, at) for column in self.columns])

    def __add__(self, other: Candidates) -> Candidates:
        both = zip(self.columns, other.columns, strict=True)
        return self.of_columns([np.concatenate(parts) for parts in both])

    def best(self, most: int) -> Candidates:
        """The ``most`` best of every completing row; the others keep their order."""
        latest = np.where(self.late == 1, self.right, self.left)
        partner = np.where(self.late == 1, self.left, self.right)
        cost = sortable(self.cost)
        order = sorting_by([partner, self.partner_time, cost, latest, self.late])
        late, row = self.late[order], latest[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (late[1:] != late[:-1]) | (row[1:] != row[:-1])
        starts = np.flatnonzero(first)
        rank = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
        return self.take(np.sort(order[rank < most]))


def candidates(
    spec: JoinSpec,
    nearest: Nearest,
    views: Sequence[Sequence[Views]],
    doubles: bool,
    rows: Sequence[I64],
    times: tuple[I64, I64],
) -> Candidates:
    """What the join has found, measured; ``views``: wide columns by stream."""
    asked = spec.predicates[nearest.predicate]
    assert isinstance(asked, Similarity), "nearest ranks by a measure"
    sides = [views[side.stream][side.column] for side in (asked.left, asked.right)]
    ends = rows[asked.left.stream], rows[asked.right.stream]
    measure = (asked.measure, doubles, False, "<=", 0.0)
    cost = measure_pairs(measure, sides[0], sides[1], *ends)
    if asked.measure not in DISTANCES:
        cost = -cost
    return Candidates.of(rows[0], rows[1], times, cost)


def of_doubles(spec: JoinSpec, nearest: Nearest) -> bool:
    """Whether the measure compares vectors of doubles."""
    asked = spec.predicates[nearest.predicate]
    assert isinstance(asked, Similarity), "nearest ranks by a measure"
    return spec.streams[asked.left.stream].varlen[asked.left.column].form == "float64"


class PendingNearest:
    """Pairs of a continuous join that better partners may still displace; scores: of no pairs."""

    def __init__(self, nearest: Nearest, scores: list[Any]) -> None:
        self._nearest = nearest
        none = np.empty(0, np.int64)
        self._pairs = Candidates(none, none, none, none, none, np.empty(0, np.float64), scores)

    def __len__(self) -> int:
        return len(self._pairs)

    @property
    def nbytes(self) -> int:
        """Bytes of the pairs that wait."""
        return sum(column.nbytes for column in self._pairs.columns)

    @property
    def columns(self) -> list[Any]:
        """All there is of the pairs that wait."""
        return self._pairs.columns

    def resume(self, columns: list[Any]) -> None:
        """Let pairs wait of which `columns` told."""
        self._pairs = Candidates.of_columns(columns)

    def add(self, found: Candidates) -> None:
        """Take new pairs, and let go of those that are not among the best any more."""
        if len(found):
            self._pairs = (self._pairs + found).best(self._nearest.most)

    def ready(self, watermarks: Sequence[int]) -> list[Any]:
        """Give out the pairs whose completing row can get no other partner, and their scores.

        All that is still to come of the other stream is as late as its watermark, or later; at
        equal times a row of the first stream is the earlier one.
        """
        pairs = self._pairs
        if not len(pairs):
            return [pairs.left, pairs.right, *pairs.scores]
        other = np.asarray(watermarks, np.int64)[1 - pairs.late]
        return self._give((other > pairs.time) | ((other == pairs.time) & (pairs.late == 0)))

    def rest(self) -> list[Any]:
        """Give out all pairs: no row will come, not even at the last time that int64 holds."""
        return self._give(np.ones(len(self._pairs), np.bool_))

    def _give(self, done: Bools) -> list[Any]:
        out = self._pairs.take(np.flatnonzero(done))
        self._pairs = self._pairs.take(np.flatnonzero(~done))
        return [out.left, out.right, *out.scores]

    @property
    def rows(self) -> tuple[I64, I64]:
        """Rows of both streams that wait."""
        return self._pairs.left, self._pairs.right

    def needed(self, stream: int) -> int | None:
        """The first row of a stream that waits; None: no row does."""
        rows = self._pairs.right if stream else self._pairs.left
        return int(rows.min()) if len(rows) else None
