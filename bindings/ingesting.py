"""What the compiled way of pushed tables is made of, stream by stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.checking import Typed
from windjoin.compared import is_double
from windjoin.expressions import MIRRORED, Column, Comparison, Constant
from windjoin.kernels.intake import Intake
from windjoin.kernels.live import LiveJoin
from windjoin.kinds import INT64_MAX, INT64_MIN
from windjoin.payload import Payload
from windjoin.plain import FLOAT64, Direct, number_column
from windjoin.pyx.arrow.payload import Gatherer, Pages
from windjoin.pyx.live.ingest import Ingest
from windjoin.pyx.live.store import Allowance, Counts, Extent, Watermark
from windjoin.pyx.live.store_step import StoreStep
from windjoin.pyx.live.unmatched import Unmatched
from windjoin.stream_rows import StreamRows

MANY = 4  # times as many columns as are read, and a few: reading would cost less than naming them
FEW = 8
ReadColumn = tuple[int, str, int, np.dtype[Any]]  # as `Reader` takes it
# a column, an operator, and an int or a float of the column's domain
Test = tuple[ReadColumn, str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What becomes of results, the same for all streams of a session."""

    names: tuple[str, ...] | None  # of streams, where results are arrival numbers
    gatherer: Gatherer | None  # None: columns are computed, or lie in chunks
    empty: pa.Table
    tabled: Callable[[list[pa.RecordBatch], int], Any]  # of push number ...
    results: Callable[[list[Any], int], Any]  # of row numbers and scores, the same
    expire: Callable[[], None]  # the payload of rows that have gone
    allowance: Allowance | None  # of rows that may come in before somebody looks at memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingesting:
    """All that an `Ingest` is told."""

    joiners: list[StoreStep]
    number: int
    clock: Watermark
    counts: Counts
    extents: list[Extent]
    schema: pa.Schema
    types: tuple[type, type]  # of tables and batches
    columns: list[ReadColumn | None]  # None: computed
    n_columns: int
    n_keys: int
    n_varlen: int
    most_columns: int
    tests: list[Test]
    owned: int  # of them, those of ``where=``
    evaluate: Callable[[Any, Any, int], tuple[Any, Any, Any, list[Any]]] | None
    own: Pages | None  # None: nothing is kept, or `append` keeps it
    pages: list[Pages]
    append: Callable[[Any], None] | None
    gatherer: Gatherer | None
    names: tuple[str, ...] | None
    empty: pa.Table
    tabled: Callable[[list[pa.RecordBatch], int], Any]
    results: Callable[[list[Any], int], Any]
    expire: Callable[[], None] | None  # None: by pages
    told: Callable[[Any, Any, int], None] | None
    reject: Callable[[Any, Any, Any], None]
    allowance: Allowance | None
    tracked: Unmatched | None  # which rows are in no result, where these come out
    alone: Callable[[int, Any], None] | None  # takes those that can be in none
    settle: Callable[[], None] | None  # at the end of a step


def ingest(
    live: Intake,
    number: int,
    rows: StreamRows,
    payloads: Sequence[Payload],
    ending: Ending,
    told: Callable[[Any, Any, int], None] | None,
    reject: Callable[[Any, Any, Any], None],
) -> Ingest | None:
    """The compiled way of stream number ``number``; None if wide columns must be computed."""
    direct = rows.direct
    if direct is None:
        return None
    tests = None if None in direct else tests_of(rows.filters, rows.schema)
    own, paged = payloads[number], all(payload.only_pages for payload in payloads)
    spec = live.spec.streams[number]
    kept, outer = len(own.names), live.outer
    return Ingest(
        Ingesting(
            joiners=live.joiners,
            number=number,
            clock=live.clocks[number],
            counts=live.counts[number],
            extents=[window.extent for window in live.windows],
            schema=rows.schema,
            types=(pa.Table, pa.RecordBatch),
            columns=[None if one is None else read_column(one) for one in direct],
            n_columns=len(spec.columns),
            n_keys=len(spec.keys),
            n_varlen=len(spec.varlen),
            most_columns=MANY * max(len(direct), kept) + FEW,
            tests=tests or [],
            owned=rows.owned,
            evaluate=None if tests is not None else rows.computed,
            own=own.pages if kept and own.only_pages else None,
            pages=[payload.pages for payload in payloads],
            append=None if own.only_pages else _of_tables(own.append),
            gatherer=ending.gatherer,
            names=ending.names,
            empty=ending.empty,
            tabled=ending.tabled,
            results=ending.results,
            expire=None if paged and live.spec.nearest is None else ending.expire,
            told=told,
            reject=_of_tables(reject),
            allowance=ending.allowance,
            tracked=None if outer is None else outer.tracked(number),
            alone=None if outer is None else outer.give,
            settle=live.settle if outer is not None and isinstance(live, LiveJoin) else None,
        )
    )


def _of_tables(take: Callable[..., None]) -> Callable[..., None]:
    """The same function for batches too."""

    def taken(rows: Any, *more: Any) -> None:
        take(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows]), *more)

    return taken


def read_column(one: Direct) -> ReadColumn:
    """A column as compiled code reads it."""
    return one.number, one.form, one.size, one.dtype


def tests_of(filters: Sequence[Typed], schema: pa.Schema) -> list[Test] | None:
    """Conditions as comparisons of columns with constants; None if any is something else."""
    tests = [_test(condition, schema) for condition in filters]
    return None if None in tests else [test for test in tests if test is not None]


def _test(condition: Typed, schema: pa.Schema) -> Test | None:
    node = condition.node
    if not isinstance(node, Comparison):
        return None
    value, other = condition.parts
    operator: str = node.operator
    if isinstance(value.node, Constant):
        value, other, operator = other, value, MIRRORED[node.operator]
    if not isinstance(value.node, Column) or not isinstance(other.node, Constant):
        return None
    column = number_column(value.node.name, schema)
    if column is None:
        return None
    constant = _in_domain(value, other, column)
    return None if constant is None else (read_column(column), operator, constant)


def _in_domain(value: Typed, other: Typed, column: Direct) -> float | None:
    """A constant as the column has its values; None if it has no such value."""
    kinds = value.kind, other.kind
    if kinds[1].family not in ("integer", "decimal", "float"):
        return None
    if isinstance(other.value, float) and not np.isfinite(other.value):
        return None
    number = Fraction(other.value) * (kinds[1].step if kinds[1].exact else 1)
    if column.dtype == FLOAT64:
        return float(number) if kinds[0].family == "float" and is_double(number) else None
    if kinds[0].family not in ("integer", "decimal") or kinds[1].family == "float":
        return None
    mantissa = number / kinds[0].step
    fits = mantissa.denominator == 1 and INT64_MIN <= mantissa <= INT64_MAX
    return int(mantissa) if fits else None
