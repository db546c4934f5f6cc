"""Event times and windows in one unit: the finest of all streams.

Times become int64 counts of that unit, windows whole numbers of it, so that
``newest - t <= window`` on integers says exactly what it says on the times themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from windjoin import exact
from windjoin.checking import column_type
from windjoin.columns import load
from windjoin.durations import Duration
from windjoin.errors import DataError, QueryError, SchemaError
from windjoin.expressions import Column
from windjoin.kernels.spec import Rows
from windjoin.kinds import (
    INT64_MAX,
    INT64_MIN,
    STEP_UNITS,
    UNIT_STEPS,
    Kind,
    kind_of,
    value_type,
)
from windjoin.row_windows import RowWindow
from windjoin.streams import Stream

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """The common unit of a query's times: seconds per tick, or None for plain integers."""

    step: Fraction | None

    @property
    def unit(self) -> str | None:
        """``"s"``, ``"ms"`` ...; None for plain integers."""
        return None if self.step is None else STEP_UNITS[self.step]

    def ticks(self, length: Duration | int, closed: Literal["both", "right"] = "both") -> int:
        """A window as the largest whole number of ticks that lies inside it."""
        if self.step is None:
            exactly = Fraction(length if isinstance(length, int) else length.nanoseconds)
        else:
            nanoseconds = length if isinstance(length, int) else length.nanoseconds
            exactly = Fraction(nanoseconds, 10**9) / self.step
        return math.floor(exactly) if closed == "both" else max(math.ceil(exactly) - 1, 0)


def clock_of(streams: Sequence[Stream], schemas: Mapping[str, pa.Schema]) -> TimeUnit:
    """The clock of streams that can be joined in time; `SchemaError` if they cannot."""
    kinds = [_time_kind(stream, schemas) for stream in streams]
    steps = [_step(stream, kind) for stream, kind in zip(streams, kinds, strict=True)]
    for number, stream in enumerate(streams[1:], 1):
        if (steps[number] is None) != (steps[0] is None):
            plain, timed = (0, number) if steps[0] is None else (number, 0)
            raise SchemaError(
                f"stream {streams[plain].name!r} has integer times without a unit and stream"
                f" {streams[timed].name!r} has times in {STEP_UNITS[steps[timed] or Fraction(1)]};"
                f' give stream {streams[plain].name!r} unit="s", "ms", "us" or "ns"'
            )
        if (kinds[number].zone is None) != (kinds[0].zone is None):
            shown = (f"{s.name!r} ({_arrow(s, schemas)})" for s in (streams[0], stream))
            raise SchemaError(
                f"times with and without a zone cannot be joined: streams {' and '.join(shown)};"
                " give both time columns a zone or neither"
            )
    for stream, step in zip(streams, steps, strict=True):
        _check_window(stream, step, schemas)
    return TimeUnit(None if steps[0] is None else min(step for step in steps if step is not None))


def _arrow(stream: Stream, schemas: Mapping[str, pa.Schema]) -> pa.DataType:
    return column_type(Column(stream.name, stream.time), schemas)


def _time_kind(stream: Stream, schemas: Mapping[str, pa.Schema]) -> Kind:
    arrow = _arrow(stream, schemas)
    kind = kind_of(arrow)
    if kind.family not in ("timestamp", "integer"):
        raise SchemaError(
            f"stream {stream.name!r}: time column {stream.time!r} is {arrow};"
            " a time is a timestamp or an integer, cast it to one"
        )
    if kind.family == "timestamp" and stream.unit is not None:
        raise SchemaError(
            f"stream {stream.name!r}: unit={stream.unit!r} is for integer times, but time column"
            f" {stream.time!r} is {arrow}; leave unit out"
        )
    return kind


def _step(stream: Stream, kind: Kind) -> Fraction | None:
    if kind.family == "timestamp":
        return kind.step
    return None if stream.unit is None else UNIT_STEPS[stream.unit]


def _check_window(stream: Stream, step: Fraction | None, schemas: Mapping[str, pa.Schema]) -> None:
    if step is None and isinstance(stream.window, Duration):
        raise SchemaError(
            f"stream {stream.name!r}: window {str(stream.window)!r} is a duration but time column"
            f" {stream.time!r} is {_arrow(stream, schemas)} without a unit; give the window as an"
            ' integer, or say what the times count with unit="s", "ms", "us" or "ns"'
        )
    if step is not None and isinstance(stream.window, int):
        raise SchemaError(
            f"stream {stream.name!r}: window {stream.window} is a number but time column"
            f" {stream.time!r} is {_arrow(stream, schemas)};"
            f' say which unit, for example window="{stream.window}s"'
        )


def window_ticks(stream: Stream, clock: TimeUnit, closed: Literal["both", "right"]) -> int:
    """The stream's window in ticks, inclusive; of rows it takes as long as it takes."""
    if isinstance(stream.window, RowWindow):
        return 0
    ticks = clock.ticks(stream.window, closed)
    if ticks > INT64_MAX:
        raise QueryError(
            f"stream {stream.name!r}: a window of {stream.window} is more than int64 holds"
            f" ({clock.unit or 'ticks'}); the longest is {INT64_MAX}"
        )
    return ticks


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """The event times of one stream in ticks of the query's clock."""

    stream: str
    column: str
    type: pa.DataType  # of its values
    ratio: int  # ticks per unit of the column
    unit: str | None

    def read(self, column: Any) -> tuple[NDArray[Any], Bools | None]:
        """Times as integers (wider than int64 if they must be), and where there is one."""
        values = load(column)
        if self.ratio == 1:
            return values.data, values.valid
        return exact.multiply(values.data, exact.constant(self.ratio)), values.valid

    def ticks(self, times: NDArray[Any], live: Bools | None, first_row: int) -> NDArray[np.int64]:
        """Times as int64; one that does not fit is an error if its row is live, else 0."""
        if times.dtype == np.int64:
            return times
        outside = np.asarray((times > INT64_MAX) | (times < INT64_MIN), np.bool_)
        rows = np.flatnonzero(outside if live is None else outside & live)
        if len(rows):
            raise DataError(
                f"stream {self.stream!r}, time column {self.column!r}, row"
                f" {first_row + int(rows[0])}: {times[rows[0]]} {self.unit or 'ticks'} does not fit"
                " int64; exclude such rows with where=, or give every stream a coarser time unit"
            )
        return np.where(outside, 0, times).astype(np.int64)

    def refuse_least(self, rows: Rows, late: Bools | None, first_row: int) -> None:
        """Raise if a row takes part that has the time which is kept for rows that do not."""
        if not len(rows) or int(rows.time.min()) != INT64_MIN:
            return
        taken = rows.usable if rows.present is None else rows.present
        least = rows.time == INT64_MIN
        if taken is not None:
            least &= taken
        if late is not None:
            least &= ~late
        if least.any():
            raise DataError(
                f"stream {self.stream!r}, time column {self.column!r}, row"
                f" {first_row + int(least.argmax())}: sessions and windows of rows take no time of"
                f" {INT64_MIN} {self.unit or 'ticks'}, the least of int64; exclude such rows with"
                " where="
            )


def time_column(stream: Stream, clock: TimeUnit, schemas: Mapping[str, pa.Schema]) -> TimeColumn:
    """How the times of ``stream`` are read."""
    own = _step(stream, _time_kind(stream, schemas))
    ratio = 1 if own is None or clock.step is None else int(own / clock.step)
    arrow = value_type(_arrow(stream, schemas))
    return TimeColumn(stream.name, stream.time, arrow, ratio, clock.unit)
