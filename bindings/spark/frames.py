"""Spark's side of a query: frames, schemas, types of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType
from windjoin.arrow.segments import SEGMENTS
from windjoin.arrow.tally import TALLY
from windjoin.binding import BoundQuery
from windjoin.errors import InputError, QueryError, SchemaError, hint, quoted
from windjoin.expressions import Alias, Column
from windjoin.query import Query

Frames = Mapping[str, Any]


def checked(query: Query, frames: Frames, *, streaming: bool = False) -> list[Any]:
    """The frames in the order of the streams: batch ones, or some ``streaming`` ones."""
    if not isinstance(frames, Mapping):
        raise QueryError(
            f"frames is a {type(frames).__name__}; give a dictionary with a DataFrame for each"
            f" stream: {', '.join(query.names)}"
        )
    for name in frames:
        if name not in query.names:
            raise SchemaError(f"{name!r} is not a stream of this query{hint(name, query.names)}")
    missing = [name for name in query.names if name not in frames]
    if missing:
        raise SchemaError(f"no DataFrame for stream {quoted(missing)}; every stream needs one")
    for name, frame in frames.items():
        if not hasattr(frame, "mapInArrow"):
            raise InputError(
                f"stream {name!r}: {type(frame).__name__} is not a Spark DataFrame;"
                " spark.createDataFrame makes one of a pandas or Arrow table"
            )
        if frame.isStreaming and not streaming:
            raise InputError(
                f"stream {name!r} is a streaming DataFrame; join takes batch DataFrames,"
                " windjoin.spark.stream and start take streaming ones"
            )
        names = frame.columns
        doubled = sorted({column for column in names if names.count(column) > 1})
        if doubled:
            raise SchemaError(
                f"stream {name!r} has several columns called {quoted(doubled)}; rename or drop"
            )
    if streaming and not any(frame.isStreaming for frame in frames.values()):
        raise InputError(
            "all frames are batch DataFrames; give a streaming one (spark.readStream), or join"
            " batch DataFrames with windjoin.spark.join"
        )
    _check_same(query, frames)
    return [frames[name] for name in query.names]


def _check_same(query: Query, frames: Frames) -> None:
    for left, right in query.exclude_self:
        one, other = query.names[left], query.names[right]
        if frames[one] is not frames[other]:
            raise QueryError(
                f"exclude_self says that {one!r} and {other!r} are one table, but they are two"
                " DataFrames; give the same DataFrame object for both"
            )


def arrow_schemas(query: Query, frames: Sequence[Any]) -> dict[str, pa.Schema]:
    """The streams' schemas as Arrow has them in the workers."""
    conf = frames[0].sparkSession.conf
    zone = conf.get("spark.sql.session.timeZone")
    large = conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    return {
        name: to_arrow_schema(frame.schema, timezone=zone, prefers_large_types=large)
        for name, frame in zip(query.names, frames, strict=True)
    }


def result_type(bound: BoundQuery, frames: Sequence[Any]) -> StructType:
    """Spark types of the result: those of the source for columns that pass through."""
    query = bound.query
    sources = {
        (name, field.name): field.dataType
        for name, frame in zip(query.names, frames, strict=True)
        for field in frame.schema
    }
    if query.select is None:
        expressions: list[Any] = [
            Column(name, column) for name in query.given for column in bound.schemas[name].names
        ]
    else:
        expressions = list(query.select)
    fields = []
    for field, expression in zip(bound.schema, expressions, strict=True):
        while isinstance(expression, Alias):
            expression = expression.expression
        kind = (
            sources[expression.stream, expression.name]
            if isinstance(expression, Column)
            else from_arrow_type(field.type)
        )
        fields.append(StructField(field.name, kind, True))
    return StructType(fields)


SEGMENT_TYPE, TALLY_TYPE = (
    StructType([StructField(f.name, from_arrow_type(f.type), False) for f in schema])
    for schema in (SEGMENTS, TALLY)
)
