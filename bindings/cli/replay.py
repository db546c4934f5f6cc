"""Play files into a session as if their rows came live, for query files with ``[shed]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from windjoin.query import Query
from windjoin.shedding import Shedding

BATCH_ROWS = 1024


def replay(
    query: Query, tables: Mapping[str, pa.Table], shed: Shedding
) -> tuple[pa.Table, dict[str, Any]]:
    """Results of a session that sheds, and its counters; rows come in order of time."""
    sources = {
        stream.name: tables[stream.name].sort_by(stream.time).to_batches(BATCH_ROWS)
        for stream in query.streams
    }
    schemas = {name: table.schema for name, table in tables.items()}
    joined = query.iterate(sources, schemas=schemas, shed=shed)
    found: list[Any] = list(joined)
    metrics: dict[str, Any] = {**joined.metrics}
    joined.close()
    schema = query.bind(schemas).schema
    return pa.concat_tables(found) if found else schema.empty_table(), metrics
