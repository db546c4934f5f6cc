"""Play files into a session as if their rows came live, for query files with ``[shed]``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from windjoin.query import Query
from windjoin.shedding import Shedding

if TYPE_CHECKING:  # the command line says itself what is wrong with the rooms of kernels
    from windjoin.kernels.spec import I64

BATCH_ROWS = 1024
PARTS = 20  # of a period: rows of one come together


def replay(
    query: Query, tables: Mapping[str, pa.Table], shed: Shedding
) -> tuple[pa.Table, dict[str, Any]]:
    """Results of a session that sheds, and its counters; rows come in order of time."""
    schemas = {name: table.schema for name, table in tables.items()}
    bound = query.bind(schemas)
    second = 1.0 if bound.clock.step is None else float(1 / bound.clock.step)
    together = max(int(shed.period / PARTS * second), 1)
    sources = {}
    for number, stream in enumerate(query.streams):
        table = tables[stream.name].sort_by(stream.time)
        sources[stream.name] = _parts(table, bound.prepare(number, table).rows.time, together)
    joined = query.iterate(sources, schemas=schemas, shed=shed)
    found: list[Any] = list(joined)
    metrics: dict[str, Any] = {**joined.metrics}
    joined.close()
    return pa.concat_tables(found) if found else bound.schema.empty_table(), metrics


def _parts(table: pa.Table, times: I64, together: int) -> list[pa.Table]:
    """Rows as they come live: those of so many ticks, of all streams in turn.

    Were some streams far ahead of others, all work would fall into what is left of the time.
    """
    starts = np.flatnonzero(np.diff(times // together)) + 1
    cuts = np.union1d(starts, np.arange(0, len(times), BATCH_ROWS)).tolist()
    return [table.slice(a, b - a) for a, b in pairwise([*cuts, len(times)])]
