"""Scores: a measure of the members of every result, from the records that were joined.

Nothing is gathered per result: a score reads both rows where they lie, by their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.side import Side
from windjoin.kernels.spec import I64, JoinSpec, Score
from windjoin.kernels.threads import in_threads
from windjoin.kernels.varlen import VarlenRows
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.similarity.scores import Scorer

COUNTS = ("overlap", "hamming", "hamming_bits")  # int64, the others are float64
NO_COUNT = -1  # a score without a value; NaN among float64
ROWS_AT_A_TIME = 1 << 16  # results; then another thread, or Ctrl-C, has its turn

Views = tuple[ColumnView, ColumnView]
Values = NDArray[Any]


class Scores:
    """What computes the scores of a join's results.

    views: the wide columns by stream, by the row numbers that results have
    alive: what the starts of rows point into
    """

    def __init__(self, spec: JoinSpec, views: Sequence[Sequence[Views]], alive: Any) -> None:
        self._scores = spec.scores
        self._scorers = [_scorer(spec, score, views) for score in spec.scores]
        self._alive = alive if spec.scores else None

    @classmethod
    def of_varlen_rows(cls, spec: JoinSpec, varlen_rows: Sequence[Sequence[VarlenRows]]) -> Scores:
        """Scores of rows of whole tables."""
        views = [
            [(ColumnView(one.start, 0), ColumnView(one.length, 0)) for one in stream]
            for stream in varlen_rows
        ]
        return cls(spec, views, varlen_rows)

    @classmethod
    def of_sides(cls, spec: JoinSpec, sides: Sequence[Side]) -> Scores:
        """Scores of rows that windows hold."""
        views = [[side.varlen_view(n) for n in range(len(side.spec.varlen))] for side in sides]
        return cls(spec, views, sides)

    def __bool__(self) -> bool:
        return bool(self._scores)

    def of(self, rows: Sequence[I64], threads: int = 1) -> list[Values]:
        """One array for each score: int64 of counts, else float64, of results ``rows[stream]``."""
        n = len(rows[0])
        made = [np.empty(n, np.int64) for _ in self._scores]

        def fill(number: int, first: int) -> None:
            score, some = self._scores[number], slice(first, first + ROWS_AT_A_TIME)
            left, right = rows[score.left.stream][some], rows[score.right.stream][some]
            self._scorers[number].fill(left, right, made[number][some])

        work = [(k, first) for k in range(len(made)) for first in range(0, n, ROWS_AT_A_TIME)]
        in_threads(min(threads, max(1, len(work))), fill, work)
        return [
            values if score.measure in COUNTS else values.view(np.float64)
            for score, values in zip(self._scores, made, strict=True)
        ]


def _scorer(spec: JoinSpec, score: Score, views: Sequence[Sequence[Views]]) -> Scorer:
    left, right = (views[side.stream][side.column] for side in (score.left, score.right))
    doubles = spec.streams[score.left.stream].varlen[score.left.column].form == "float64"
    return Scorer((score.measure, doubles, False, "<=", 0.0), left, right, score.measure in COUNTS)
