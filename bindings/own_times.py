"""The times of one stream as long as nothing is known of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.kernels.intake import LateSplit
from windjoin.kernels.spec import I64
from windjoin.kinds import INT64_MAX, UNIT_STEPS
from windjoin.layout import gatherable_schema
from windjoin.pyx.live.store import Watermark
from windjoin.query import Query
from windjoin.times import TimeUnit, clock_of, time_column
from windjoin.watermarks import length_ticks, promise_ticks

END = object()  # instead of a time: no more rows of this stream


class OwnTimes:
    """The times of a stream, judged before the units of all others are known.

    Within a stream it does not matter how fine the ticks are.
    """

    def __init__(self, query: Query, number: int, schema: pa.Schema, lateness: Any) -> None:
        stream = query.streams[number]
        schemas = {stream.name: gatherable_schema(schema)}
        own = clock_of([stream], schemas)
        given = [UNIT_STEPS[one.unit] for one in query.streams if one.unit is not None]
        self.clock = own if own.step is None else TimeUnit(min([own.step, *given]))
        self.column = time_column(stream, self.clock, schemas)
        integers = pa.types.is_integer(self.column.type)
        self.marks = Watermark(length_ticks("lateness", self.clock, lateness, integers))

    def promise(self, time: Any) -> None:
        """No rows before a time, or none at all: END."""
        ticks = INT64_MAX if time is END else promise_ticks(self.column, time)
        self.marks.promised = max(self.marks.promised, ticks)

    def split_late(self, table: pa.Table) -> tuple[I64, LateSplit]:
        """Times of rows in ticks, and which of them would be late."""
        times, timed = self.column.read(table.column(self.column.column))
        ticks = self.column.ticks(times, np.zeros(len(times), np.bool_), 0)
        bad = None if timed is None else (~timed).view(np.uint8)
        return ticks, LateSplit(*self.marks.split_late(ticks, bad))
