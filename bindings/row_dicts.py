"""Rows as they come from JSON or a queue: dictionaries of scalars, one for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from windjoin.errors import InputError


def is_row(source: Any) -> bool:
    """Whether a dictionary is a row and not columns: nothing in it is a list or an array.

    >>> is_row({"t": 5, "who": "ann", "tags": {"x": 1.0}}), is_row({"t": [5]})
    (True, False)
    """
    return bool(source) and all(map(_is_scalar, source.values()))


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__")


def are_rows(source: Any) -> bool:
    """Whether a list is one of rows."""
    return isinstance(source, list) and bool(source) and isinstance(source[0], Mapping)


def rows_as_table(rows: Sequence[Any], stream: str, schema: pa.Schema | None) -> pa.Table:
    """Rows as a table: a column for each key in any of them, null where a row has none.

    ``schema``: of the stream, once it is known; its types are taken for keys that it has, and what
    no row has is null, unless a row has what the stream has not: then it may be misspelled.
    """
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(
                f"stream {stream!r}: row {number} is {row!r} ({type(row).__name__}), the first is a"
                " dictionary; give a dictionary for every row"
            )
        names.update(dict.fromkeys(row))
    if schema is not None and names.keys() <= set(schema.names):
        names = dict.fromkeys(schema.names)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return pa.table(
        {name: values_as_column(stream, name, values, schema) for name, values in columns.items()}
    )


def values_as_column(stream: str, name: str, values: list[Any], schema: pa.Schema | None) -> Any:
    """Values as an Arrow array, of the type that ``schema`` has for them, if it has any.

    >>> values_as_column("calls", "x", [1, None], pa.schema([("x", pa.float64())])).to_pylist()
    [1.0, None]
    """
    known = None if schema is None or name not in schema.names else schema.field(name).type
    weighted = [value for value in values if isinstance(value, Mapping)]
    try:
        if weighted and (known is None or pa.types.is_map(known)):
            return _weights(values, known)
        return _array(values, known)
    except (pa.ArrowException, ValueError, TypeError) as error:
        row, value = _first_wrong(values, known)
        said = str(error).splitlines()[0]
        raise InputError(
            f"stream {stream!r}: column {name!r}, row {row}: {value!r} is no"
            f" {known or 'value of the type of the rows before it'} ({said})"
        ) from error


def _array(values: list[Any], known: Any) -> Any:
    """Values as an array of a type; times exactly: Arrow by itself cuts off and takes integers."""
    if known is None or not pa.types.is_temporal(known):
        return pa.array(values, known)
    array: Any = pa.array(values)
    if pa.types.is_integer(array.type):
        raise TypeError("an integer is no time; give a datetime, date, time or timedelta")
    instants = pa.types.is_timestamp(array.type)
    if instants and pa.types.is_timestamp(known) and (known.tz is None) != (array.type.tz is None):
        raise TypeError("it has a zone and the column has none, or the other way round")
    if instants and pa.types.is_date(known):
        raise TypeError("a date has no time of day; give a date")
    return array.cast(known)


def _weights(values: list[Any], known: Any) -> Any:
    """Dictionaries as maps, such as weights by keyword."""
    pairs = [None if value is None else list(value.items()) for value in values]
    if known is None:
        items = pa.array([item for one in pairs if one for item, _ in one])
        known = pa.map_(items.type, pa.float64())
    return pa.array(pairs, known)


def _first_wrong(values: list[Any], known: Any) -> tuple[int, Any]:
    for row in range(len(values)):
        try:
            _array(values[: row + 1] if known is None else values[row : row + 1], known)
        except (pa.ArrowException, ValueError, TypeError):
            return row, values[row]
    return 0, values[0]
