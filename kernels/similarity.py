"""Similarity of whole rows: what all its indexes and its filter share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.access import Access, RowSource, Situation
from windjoin.kernels.side import Side
from windjoin.kernels.spec import (
    F64,
    I64,
    ArrayColumn,
    BytesColumn,
    JoinSpec,
    Rows,
    SetColumn,
    Similarity,
    StreamSpec,
    Varlen,
    VarlenSpec,
)
from windjoin.kernels.statistics import ItemCounts, Statistics
from windjoin.kernels.varlen import VarlenRows, encode_varlen
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.similarity.blocks import GroupProber
from windjoin.pyx.similarity.measures import MeasureFilter, measure_pairs

SAMPLE_ROWS = 48  # of each stream; all pairs of them are measured
FEW_SAMPLE_ROWS = 32  # where two streams have so few rows that joining them takes no longer
FEW_ROWS = 2048
FEW_ITEMS = 2.0  # on average; sets that have more are not looked up item by item
SET_MEASURES = ("overlap", "jaccard", "containment", "cosine_sets")
COMPARE: dict[str, Callable[[F64, float], NDArray[np.bool_]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
MOST_PARTS = 4  # predicates that one index decides in one hop
MeasureOf = tuple[str, bool, bool, str, float]  # name, of doubles, turned, operation, threshold


def varlen_sides(predicate: Similarity, target: int) -> tuple[Varlen, Varlen]:
    """(bound column, column of the target)."""
    if predicate.right.stream == target:
        return predicate.left, predicate.right
    return predicate.right, predicate.left


def measure_of(predicate: Similarity, target: int, doubles: bool) -> MeasureOf:
    """What `set_measure` wants, for bound rows that ask about rows of ``target``."""
    turned = predicate.left.stream == target
    return predicate.measure, doubles, turned, predicate.operator, predicate.threshold


def as_measure_filter(
    predicate: Similarity, target: int, sides: Sequence[Side]
) -> tuple[str, int, MeasureFilter]:
    """What `Pipeline.add_hop` wants of a similarity that no index decides."""
    return (
        "pairs",
        varlen_sides(predicate, target)[0].stream,
        MeasureFilter(*asked(predicate, target, sides)),
    )


def measure_columns(
    measure: str, left: SetColumn | ArrayColumn, right: SetColumn | ArrayColumn
) -> F64:
    """The exact measure of row i of ``left`` and row i of ``right``; NaN where there is none."""
    varlen = [_wide_spec(column) for column in (left, right)]
    streams = tuple(StreamSpec("", 0, varlen=(wide,)) for wide in varlen)
    none = np.empty(0, np.int64)
    varlen_rows = encode_varlen(
        JoinSpec(streams, ()), [Rows(none, varlen=[c]) for c in (left, right)]
    )
    views = [(ColumnView(one.start, 0), ColumnView(one.length, 0)) for (one,) in varlen_rows]
    rows = np.arange(len(left.offsets) - 1)
    doubles = varlen[0].form == "float64"
    asked_for = (measure, doubles, False, "<=", 0.0)
    return measure_pairs(asked_for, views[0], views[1], rows, rows)


def _wide_spec(column: SetColumn | ArrayColumn) -> VarlenSpec:
    if isinstance(column, ArrayColumn):
        form: Any = str(column.values.dtype)
        return VarlenSpec(form)
    items: Any = "bytes" if isinstance(column.items, BytesColumn) else "int64"
    return VarlenSpec("set" if column.weights is None else "weighted", items, 0)


def with_sampled(
    found: Statistics, spec: JoinSpec, varlen_rows: Sequence[Sequence[VarlenRows]]
) -> Statistics:
    """``found`` and, of pairs of evenly spread rows, the shares that pass each similarity."""
    shares, items = {}, {}
    for p in spec.predicates:
        if isinstance(p, Similarity):
            left, right = (varlen_rows[side.stream][side.column] for side in (p.left, p.right))
            pairs = _pairs(left, right)
            if len(pairs[0]):
                values = _measured(spec, p, p.measure, pairs, (left, right))
                hits = int(COMPARE[p.operator](values, p.threshold).sum())
                shares[p.place] = max(hits, 0.5) / len(values)
                if p.measure in SET_MEASURES:
                    items[p.place] = _items(spec, p, values, pairs, (left, right))
    return replace(found, selectivity=found.selectivity | shares, items=items)


def _measured(
    spec: JoinSpec, p: Similarity, measure: str, pairs: tuple[I64, I64], sides: Sequence[VarlenRows]
) -> F64:
    doubles = spec.streams[p.left.stream].varlen[p.left.column].form == "float64"
    left, right = ((ColumnView(one.start, 0), ColumnView(one.length, 0)) for one in sides)
    return measure_pairs((measure, doubles, False, "<=", 0.0), left, right, *pairs)


def _items(
    spec: JoinSpec,
    p: Similarity,
    values: F64,
    pairs: tuple[I64, I64],
    sides: tuple[VarlenRows, VarlenRows],
) -> ItemCounts:
    """How many items sets have; what is in common only if they have few.

    values: the measure of ``p`` for each pair
    """
    lengths = [one.length[rows] for one, rows in zip(sides, pairs, strict=True)]
    left, right = (float(length.mean()) for length in lengths)
    alone = all(bool((length <= 1).all()) for length in lengths)
    if max(left, right) > FEW_ITEMS:
        return ItemCounts(left, right, min(left, right), alone)
    overlaps = values if p.measure == "overlap" else _measured(spec, p, "overlap", pairs, sides)
    return ItemCounts(left, right, max(float(overlaps.sum()), 0.5) / len(pairs[0]), alone)


def _pairs(left: VarlenRows, right: VarlenRows) -> tuple[I64, I64]:
    few = max(len(left.start), len(right.start)) <= FEW_ROWS
    most = FEW_SAMPLE_ROWS if few else SAMPLE_ROWS
    at = [_spread(len(one.start), most) for one in (left, right)]
    return np.tile(at[0], len(at[1])), np.repeat(at[1], len(at[0]))


def _spread(rows: int, most: int) -> I64:
    return np.linspace(0, max(rows - 1, 0), min(rows, most)).astype(np.int64)


def asked(predicate: Similarity, target: int, sides: Sequence[Side]) -> tuple[Any, Any, Any]:
    """The measure, and the views of the rows that ask and of those asked about."""
    bound, own = varlen_sides(predicate, target)
    doubles = sides[own.stream].spec.varlen[own.column].form == "float64"
    return (
        measure_of(predicate, target, doubles),
        sides[bound.stream].varlen_view(bound.column),
        sides[own.stream].varlen_view(own.column),
    )


@dataclass(frozen=True)
class Alike(Access):
    """What the indexes of sets, vectors and images share: one wide column, and how to ask."""

    predicates: tuple[Similarity, ...]
    column: int

    @property
    def source(self) -> RowSource:
        return "wide", (self.column,)

    def ask(self, sides: Sequence[Side]) -> dict[str, Any]:
        return {"prober": prober(self.predicates, self.target, sides)}


def prober(predicates: Sequence[Similarity], target: int, sides: Sequence[Side]) -> GroupProber:
    """What an index must know of a hop that asks for all of ``predicates``."""
    parts = []
    for predicate in predicates:
        bound = sides[varlen_sides(predicate, target)[0].stream]
        number = varlen_sides(predicate, target)[0].stream
        windows = bound.spec.window, sides[target].spec.window
        parts.append((number, bound.time_view, *windows, asked(predicate, target, sides)))
    return GroupProber(parts)


def choices(
    situation: Situation, index_of: Callable[[Similarity], Hashable]
) -> Iterator[tuple[int, tuple[Similarity, ...]]]:
    """(column of the target, predicates on it that one index decides): each alone, and together.

    ``index_of`` names the index that decides a predicate; None: there is none.
    """
    alike: dict[Hashable, list[Similarity]] = {}
    for p in situation.predicates:
        kind = index_of(p) if isinstance(p, Similarity) else None
        if isinstance(p, Similarity) and kind is not None:
            column = varlen_sides(p, situation.target)[1].column
            alike.setdefault((kind, column), []).append(p)
    for found in alike.values():
        column = varlen_sides(found[0], situation.target)[1].column
        for p in found:
            yield column, (p,)
        if len(found) > 1:
            yield column, tuple(found[:MOST_PARTS])


def group_cost(
    situation: Situation, predicates: Sequence[Similarity], per_row: float, per_bit: float
) -> tuple[float, float]:
    """(candidates, nanoseconds) per partial result of an index that answers rows, not partials."""
    candidates, cost = situation.window_rows, per_bit * situation.window_rows
    for p in predicates:
        stream = varlen_sides(p, situation.target)[0].stream
        started = stream == situation.bound[0]  # by a row of a push, where no rows are counted
        probing = situation.statistics.rows[stream] or (1.0 if started else situation.partials)
        candidates *= situation.statistics.share(p)
        again = min(1.0, probing / max(situation.partials, 1.0))
        cost += per_row * situation.window_rows * again
    return candidates, cost
