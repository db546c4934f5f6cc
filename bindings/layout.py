"""Layouts that Arrow cannot gather rows from, and the ones that stand in for them.

Arrow has no ``take`` for string views, binary views (what polars hands over) and run-end encoded
columns, alone or inside lists and structs.  They become large strings, large binary and plain
values once, at the door; nothing else is changed.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

Data = TypeVar("Data", pa.Table, pa.RecordBatch)
_last_good: list[pa.Schema] = [pa.schema([])]  # pushes have the schema of the one before


def gatherable_type(arrow: pa.DataType) -> Any:
    """The type that stands in for ``arrow``; itself if rows can be gathered from it.

    >>> gatherable_type(pa.list_(pa.string_view()))
    ListType(list<item: large_string>)
    """
    kind: Any = arrow
    if pat.is_string_view(kind):
        return pa.large_string()
    if pat.is_binary_view(kind):
        return pa.large_binary()
    if pat.is_run_end_encoded(kind):
        return gatherable_type(kind.value_type)
    if pat.is_dictionary(kind):
        return pa.dictionary(kind.index_type, gatherable_type(kind.value_type), kind.ordered)
    if pat.is_struct(kind):
        return pa.struct([_gatherable_field(kind.field(i)) for i in range(kind.num_fields)])
    if pat.is_map(kind):
        return pa.map_(_gatherable_field(kind.key_field), _gatherable_field(kind.item_field))
    if pat.is_fixed_size_list(kind):
        return pa.list_(_gatherable_field(kind.value_field), kind.list_size)
    if pat.is_large_list(kind):
        return pa.large_list(_gatherable_field(kind.value_field))
    if pat.is_list(kind):
        return pa.list_(_gatherable_field(kind.value_field))
    return arrow


def _gatherable_field(field: Any) -> Any:
    return field.with_type(gatherable_type(field.type))


def gatherable_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns in types from which rows can be gathered."""
    fields: list[Any] = [_gatherable_field(field) for field in schema]
    metadata: Any = schema.metadata
    return pa.schema(fields, metadata)


def gatherable(data: Data) -> Data:
    """The same rows in types from which rows can be gathered; itself if it has only such."""
    if data.schema.equals(_last_good[0]):
        return data
    schema = gatherable_schema(data.schema)
    if schema.equals(data.schema):
        _last_good[0] = schema
        return data
    columns: list[Any] = [
        gatherable_column(column) if column.type != field.type else column
        for column, field in zip(data.columns, schema, strict=True)
    ]
    return type(data).from_arrays(columns, schema=schema)


def gatherable_column(column: Any) -> Any:
    """The same values in a type from which rows can be gathered."""
    arrow: Any = gatherable_type(column.type)
    if not pat.is_run_end_encoded(column.type):
        return column if column.type == arrow else column.cast(arrow)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    written: list[Any] = [_written_out(chunk) for chunk in chunks]
    return written[0] if isinstance(column, pa.Array) else pa.chunked_array(written, arrow)


def _written_out(runs: Any) -> Any:
    """Every value as often as its run is long; Arrow's own decoder knows no views."""
    ends = np.asarray(runs.run_ends)
    places = np.searchsorted(ends, np.arange(runs.offset, runs.offset + len(runs)), "right")
    return gatherable_column(runs.values).take(pa.array(places))
