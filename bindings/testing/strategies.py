"""Hypothesis strategies for streams: small tables with ties, gaps and nulls.

Needs Hypothesis, and is imported by nothing else: ``from windjoin.testing import strategies``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat
from hypothesis import strategies as st
from windjoin.errors import SchemaError
from windjoin.kinds import value_type
from windjoin.query import Query

FEW = (0, 1, 2, 3)  # values of a column: the fewer, the more rows meet


def tables(
    q: Query,
    schemas: Mapping[str, pa.Schema],
    *,
    rows: int = 12,
    times: int = 20,
    nulls: bool = True,
) -> st.SearchStrategy[dict[str, pa.Table]]:
    """Tables for every stream of a query, of few rows with few different values.

    ``rows``: of each table, at most.  ``times``: rows lie at 0 .. ``times`` units of their time
    column (seconds of timestamps), some at the same.  ``nulls``: whether columns that may be null
    are, now and then.

    >>> import windjoin as wj
    >>> from hypothesis import given
    >>> from windjoin import testing
    >>> from windjoin.testing import strategies
    >>> a, b = (wj.stream(name, time="t", window=5) for name in ("a", "b"))
    >>> q = wj.join(a, b, on=a["k"] == b["k"])
    >>> schema = pa.schema([("t", pa.int64()), ("k", pa.string())])
    >>> @given(strategies.tables(q, {"a": schema, "b": schema}))
    ... def test_my_join(tables):
    ...     testing.check(q, tables, modes="batch")
    >>> test_my_join()
    """
    drawn = {}
    for stream in q.streams:
        schema = schemas[stream.name]
        columns = [
            _times(field, times, nulls) if field.name == stream.time else _values(field, nulls)
            for field in schema
        ]
        drawn[stream.name] = st.lists(st.tuples(*columns), max_size=rows).map(_table_of(schema))
    return st.fixed_dictionaries(drawn)


def _table_of(schema: pa.Schema) -> Callable[[list[tuple[Any, ...]]], pa.Table]:
    def made(rows: list[tuple[Any, ...]]) -> pa.Table:
        columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [
            pa.array(list(column), field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        return pa.table(arrays, schema=schema)

    return made


def _times(field: Any, times: int, nulls: bool) -> st.SearchStrategy[Any]:
    drawn: st.SearchStrategy[Any] = st.integers(0, times)
    if pat.is_timestamp(field.type):
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[field.type.unit]
        drawn = drawn.map(lambda seconds: seconds * per_second)
    return _or_null(drawn, field, nulls, often=10)


def _values(field: Any, nulls: bool) -> st.SearchStrategy[Any]:
    return _or_null(_of_type(value_type(field.type), field), field, nulls, often=5)


def _or_null(drawn: Any, field: Any, nulls: bool, often: int) -> st.SearchStrategy[Any]:
    if not nulls or not field.nullable:
        return drawn  # type: ignore[no-any-return]
    return st.integers(0, often).flatmap(lambda n: drawn if n else st.none())


def _of_type(arrow: pa.DataType, field: Any) -> st.SearchStrategy[Any]:
    few = st.sampled_from(FEW)
    if pat.is_boolean(arrow):
        return st.booleans()
    if pat.is_integer(arrow) or pat.is_timestamp(arrow) or pat.is_time(arrow) or pat.is_date(arrow):
        return few
    if pat.is_duration(arrow):
        return few.map(lambda seconds: timedelta(seconds=seconds))
    if pat.is_floating(arrow):
        return st.sampled_from([0.0, 1.0, 2.0, 0.5, -0.0])
    if pat.is_decimal(arrow):
        return few.map(Decimal)
    if pat.is_string(arrow) or pat.is_large_string(arrow) or pat.is_string_view(arrow):
        return st.sampled_from(["a", "b", "c", ""])
    if pat.is_fixed_size_list(arrow):
        inner = _of_type(arrow.value_type, field)
        return st.lists(inner, min_size=arrow.list_size, max_size=arrow.list_size)
    if pat.is_list(arrow) or pat.is_large_list(arrow):
        return st.lists(_of_type(arrow.value_type, field), max_size=4)
    if pat.is_fixed_size_binary(arrow):
        return st.sampled_from([bytes(arrow.byte_width), b"\1" * arrow.byte_width])
    if pat.is_binary(arrow) or pat.is_large_binary(arrow):
        return st.sampled_from([b"", b"a", b"ab"])
    raise SchemaError(f"column {field.name!r} is {arrow}: there is no strategy for that; draw it")
