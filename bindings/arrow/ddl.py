"""Schemas as Spark writes them, without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from windjoin.errors import SchemaError


def ddl(schema: pa.Schema) -> str:
    """A schema as ``mapInArrow`` takes it.

    >>> ddl(pa.schema([("a_t", pa.int64()), ("who", pa.string())]))
    '`a_t` bigint, `who` string'
    """
    return ", ".join(f"{_quoted(field.name)} {ddl_type(field.type)}" for field in schema)


def ddl_type(arrow: pa.DataType) -> str:
    """What Spark calls a type.

    >>> days = pa.map_(pa.string(), pa.date32())
    >>> ddl_type(pa.struct([("x", pa.list_(pa.int32())), ("a`b", days)]))
    'struct<`x`: array<int>, `a``b`: map<string, date>>'
    >>> ddl_type(pa.timestamp("us")), ddl_type(pa.timestamp("us", "UTC"))
    ('timestamp_ntz', 'timestamp')
    """
    types = pa.types
    if types.is_dictionary(arrow):
        return ddl_type(arrow.value_type)
    if types.is_map(arrow):
        return f"map<{ddl_type(arrow.key_type)}, {ddl_type(arrow.item_type)}>"
    if types.is_struct(arrow):
        inner = (f"{_quoted(field.name)}: {ddl_type(field.type)}" for field in arrow)
        return f"struct<{', '.join(inner)}>"
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return f"array<{ddl_type(arrow.value_type)}>"
    if types.is_timestamp(arrow):
        return "timestamp" if arrow.tz else "timestamp_ntz"
    if types.is_decimal(arrow) and arrow.precision <= MOST_DIGITS:
        return f"decimal({arrow.precision},{arrow.scale})"
    for known, name in _DDL:
        if known(arrow):
            return name
    raise SchemaError(f"Spark has no type for {arrow}; leave the column out with select=")


MOST_DIGITS = 38
_DDL: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_date32, "date"),
    (pa.types.is_duration, "interval day to second"),
    (pa.types.is_null, "void"),
)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
