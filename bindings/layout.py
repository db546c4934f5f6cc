"""Layouts that Arrow cannot gather rows from, and the ones that stand in for them.

Arrow has no ``take`` for string views, binary views (what polars hands over) and run-end encoded
columns, alone or inside others, and cannot bring dictionaries of nested values, half floats or
nulls together.  They become large strings, large binary and plain values once, at the door, and
nulls that stand in a dictionary become nulls beside it; nothing else is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

Data = TypeVar("Data", pa.Table, pa.RecordBatch)
_last_good: list[Any] = [(pa.schema([]), [])]  # pushes have the schema of the one before


def gatherable_type(arrow: pa.DataType) -> Any:
    """The type that stands in for ``arrow``; itself if rows can be gathered from it.

    >>> gatherable_type(pa.list_(pa.string_view()))
    ListType(list<item: large_string>)
    """
    kind: Any = arrow
    if pat.is_dictionary(kind):
        values = gatherable_type(kind.value_type)
        if not _can_be_unified(values):
            return values
        return pa.dictionary(kind.index_type, values, kind.ordered)
    return _substitute(kind, gatherable_type)


def plain_type(arrow: pa.DataType) -> Any:
    """The same without dictionaries, which would be messages of their own.

    >>> plain_type(pa.list_(pa.dictionary(pa.int8(), pa.string())))
    ListType(list<item: string>)
    """
    if pat.is_dictionary(arrow):
        return plain_type(arrow.value_type)
    return _substitute(arrow, plain_type)


def _substitute(kind: Any, inner: Callable[[Any], Any]) -> Any:
    """The stand-in for a type, with those of the types inside it."""
    if pat.is_string_view(kind):
        return pa.large_string()
    if pat.is_binary_view(kind):
        return pa.large_binary()
    if pat.is_run_end_encoded(kind):
        return inner(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        storage = inner(kind.storage_type)
        return kind if storage == kind.storage_type else storage
    if not pat.is_nested(kind):
        return kind
    fields = [_substituted(kind.field(number), inner) for number in range(kind.num_fields)]
    if pat.is_struct(kind):
        return pa.struct(fields)
    if pat.is_map(kind):
        of = [_substituted(field, inner) for field in (kind.key_field, kind.item_field)]
        made: Any = pa.map_
        return made(*of, keys_sorted=kind.keys_sorted)
    if pat.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    if pat.is_union(kind):
        return pa.union(fields, kind.mode, kind.type_codes)
    return _LISTS[kind.id](fields[0])


def _substituted(field: Any, inner: Callable[[Any], Any]) -> Any:
    return field.with_type(inner(field.type))


_LISTS: dict[int, Callable[[Any], Any]] = {
    pa.list_(pa.null()).id: pa.list_,
    pa.large_list(pa.null()).id: pa.large_list,
    pa.list_view(pa.null()).id: pa.list_view,
    pa.large_list_view(pa.null()).id: pa.large_list_view,
}


def _can_be_unified(values: Any) -> bool:
    """Whether Arrow makes one dictionary of several with such values, and the right one."""
    encoded = pat.is_dictionary(values) or isinstance(values, pa.BaseExtensionType)
    other = pat.is_nested(values) or pat.is_null(values) or pat.is_float16(values)
    return not (encoded or other)


def gatherable_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns in types from which rows can be gathered."""
    fields: list[Any] = [_substituted(field, gatherable_type) for field in schema]
    metadata: Any = schema.metadata
    return pa.schema(fields, metadata)


def gatherable(data: Data) -> Data:
    """The same rows in types from which rows can be gathered; itself if it has only such."""
    schema, encoded = _last_good[0]
    good = data.schema.equals(schema)
    if not good:
        schema = gatherable_schema(data.schema)
        encoded = [number for number, field in enumerate(schema) if has_dictionary(field.type)]
        good = schema.equals(data.schema)
        if good:
            _last_good[0] = (schema, encoded)
    if good and not (encoded and any(_with_null_values(data.column(n)) for n in encoded)):
        return data
    columns: list[Any] = [
        laid_out(column, field.type) for column, field in zip(data.columns, schema, strict=True)
    ]
    return type(data).from_arrays(columns, schema=schema)


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows; Arrow's own knows no dictionaries of decimals or times in lists."""
    columns: list[Any] = [pa.nulls(0, field.type) for field in schema]
    return pa.table(columns, schema=schema)


def has_dictionary(arrow: Any) -> bool:
    """Whether values of a type, or values inside them, stand in a dictionary."""
    if isinstance(arrow, pa.BaseExtensionType):
        return has_dictionary(arrow.storage_type)
    inside = (arrow.field(number).type for number in range(arrow.num_fields))
    return pat.is_dictionary(arrow) or (pat.is_nested(arrow) and any(map(has_dictionary, inside)))


def _with_null_values(column: Any) -> bool:
    """Whether nulls stand in a dictionary of the column, where Arrow cannot unify it."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return any(map(_has_null_value, chunks))


def _has_null_value(array: Any) -> bool:
    if isinstance(array, pa.ExtensionArray):
        return _has_null_value(array.storage)
    if isinstance(array, pa.DictionaryArray):
        return bool(array.dictionary.null_count)
    return has_dictionary(array.type) and any(map(_has_null_value, _children(array)))


# -- the same values in another layout ------------------------------------------------------


def laid_out(column: Any, arrow: Any) -> Any:
    """The values of an array or a chunked array in the layout of ``arrow``."""
    if isinstance(column, pa.ChunkedArray):
        if column.type == arrow and not _with_null_values(column):
            return column
        return pa.chunked_array([_laid_out(chunk, arrow) for chunk in column.chunks], arrow)
    return _laid_out(column, arrow)


def _laid_out(array: Any, arrow: Any) -> Any:
    kind = array.type
    if kind == arrow and not _has_null_value(array):
        return array
    if isinstance(arrow, pa.BaseExtensionType):
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        return pa.ExtensionArray.from_storage(arrow, _laid_out(storage, arrow.storage_type))
    if isinstance(array, pa.ExtensionArray):
        return _laid_out(array.storage, arrow)
    if pat.is_run_end_encoded(kind):
        return _written_out(array, arrow)
    if pat.is_dictionary(kind):
        return _decoded(array, arrow)
    if pat.is_dictionary(arrow):
        return _encoded(array, arrow)
    return _with_children(array, arrow) if _alike(kind, arrow) else array.cast(arrow)


def _alike(kind: Any, arrow: Any) -> bool:
    """Whether two types are nested and differ in the types of their fields alone."""
    if not pat.is_nested(kind) or kind.id != arrow.id or kind.num_fields != arrow.num_fields:
        return False
    if pat.is_fixed_size_list(kind):
        return bool(kind.list_size == arrow.list_size)
    if not pat.is_struct(kind) and not pat.is_union(kind):
        return True
    return all(kind.field(n).name == arrow.field(n).name for n in range(kind.num_fields))


def _written_out(runs: Any, arrow: Any) -> Any:
    """Every value as often as its run is long; Arrow's own decoder knows no views."""
    ends = np.asarray(runs.run_ends)
    places = np.searchsorted(ends, np.arange(runs.offset, runs.offset + len(runs)), "right")
    return _laid_out(runs.values, arrow).take(pa.array(places))


def _decoded(array: Any, arrow: Any) -> Any:
    """The values of a dictionary array, in ``arrow``, which may be a dictionary too."""
    if not pat.is_dictionary(arrow):
        return _laid_out(array.dictionary, arrow).take(array.indices)
    values, indices = _laid_out(array.dictionary, arrow.value_type), array.indices
    if values.null_count:
        valid = np.asarray(values.is_valid())
        places = pa.array(np.cumsum(valid) - 1, arrow.index_type, mask=~valid)
        values, indices = values.drop_null(), places.take(indices)
    indices = indices if indices.type == arrow.index_type else indices.cast(arrow.index_type)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=arrow.ordered)


def _encoded(array: Any, arrow: Any) -> Any:
    """Plain values as a dictionary array."""
    values = _laid_out(array, arrow.value_type)
    try:
        return _decoded(values.dictionary_encode(), arrow)
    except pa.ArrowNotImplementedError:  # Arrow does not look for equal ones among all types
        indices = pa.array(np.arange(len(values)), arrow.index_type)
        return _decoded(pa.DictionaryArray.from_arrays(indices, values), arrow)


def _with_children(array: Any, arrow: Any) -> Any:
    """A nested array whose children have the layouts of the fields of ``arrow``."""
    children = [
        _laid_out(child, arrow.field(number).type) for number, child in enumerate(_children(array))
    ]
    if pat.is_struct(arrow):
        missing = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=missing)
    if pat.is_union(arrow):
        return pa.Array.from_buffers(arrow, len(array), _union_buffers(array), children=children)
    buffers = array.buffers()[: _BUFFERS.get(arrow.id, 1)]
    return pa.Array.from_buffers(
        arrow, len(array), buffers, array.null_count, array.offset, children
    )


def _union_buffers(array: Any) -> list[Any]:
    """Which field each row is of, and where in it; `type_codes` does not know of slices."""
    widths = (1,) if array.type.mode == "sparse" else (1, 4)
    buffers = zip(array.buffers()[1:], widths, strict=False)
    return [None, *(b.slice(w * array.offset, w * len(array)) for b, w in buffers)]


_BUFFERS = {  # its own, before those of its children; else the bits that say what is null
    pa.list_(pa.null()).id: 2,
    pa.large_list(pa.null()).id: 2,
    pa.map_(pa.int8(), pa.null()).id: 2,
    pa.list_view(pa.null()).id: 3,
    pa.large_list_view(pa.null()).id: 3,
}


def _children(array: Any) -> list[Any]:
    """What is inside a nested array: fields of its own rows, or items of all lists it lies in."""
    if pat.is_struct(array.type) or pat.is_union(array.type):
        return [array.field(number) for number in range(array.type.num_fields)]
    return [array.values]


# -- rows of chunks whose dictionaries do not fit into one ----------------------------------


def combined(table: pa.Table) -> pa.Table:
    """The rows with one chunk in each column, but where one cannot hold them."""
    try:
        return table.combine_chunks()
    except pa.ArrowInvalid:
        columns = [_combined(column) for column in table.columns]
        return pa.Table.from_arrays(columns, schema=table.schema)


def _combined(column: Any) -> Any:
    if not has_dictionary(column.type):
        return column
    return fitted(laid_out(column, plain_type(column.type)).combine_chunks(), column.type)


def taken(column: Any, rows: Any) -> Any:
    """Rows of a chunked array whose chunks have dictionaries of their own."""
    starts = np.cumsum([0, *map(len, column.chunks)])
    chunk = np.searchsorted(starts, rows, "right") - 1
    order = np.argsort(chunk, kind="stable")
    plain = plain_type(column.type)
    parts = []
    for number in np.unique(chunk):
        own: Any = pa.array(rows[order[chunk[order] == number]] - starts[number])
        parts.append(laid_out(column.chunk(int(number)).take(own), plain))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    indices: Any = pa.array(back)
    return fitted(pa.chunked_array(parts, plain).take(indices), column.type)


def fitted(values: Any, arrow: Any) -> Any:
    """Values in as many chunks of a type as its dictionaries ask for."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return pa.chunked_array([part for chunk in chunks for part in _fitted(chunk, arrow)], arrow)


def _fitted(array: Any, arrow: Any) -> list[Any]:
    try:
        return [laid_out(array, arrow)]
    except pa.ArrowInvalid:  # more different values than the dictionary has numbers for
        middle = len(array) // 2
        if not middle:
            raise
        return [*_fitted(array[:middle], arrow), *_fitted(array[middle:], arrow)]
