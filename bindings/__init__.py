"""Exact windowed joins of any number of streams on any predicate, on Arrow data."""

from windjoin.errors import (
    DataError,
    InputError,
    QueryError,
    SchemaError,
    SessionError,
    WindjoinError,
)
from windjoin.expressions import udf
from windjoin.query import Query, join
from windjoin.streams import Stream, stream

__all__ = [
    "DataError",
    "InputError",
    "Query",
    "QueryError",
    "SchemaError",
    "SessionError",
    "Stream",
    "WindjoinError",
    "join",
    "stream",
    "udf",
]
