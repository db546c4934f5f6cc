"""What tells tables apart by their values: the same whatever Arrow writes to a file.

Files of Arrow are the same values laid out in many ways, from one release to the next.  What is
summed here are names, types, which values are null, lengths, and the bytes of what is not.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

DIGITS = 24


def sum_of(*tables: pa.Table | pa.RecordBatch) -> str:
    """Hexadecimal digits that differ where names, types, numbers of rows or values do.

    >>> rows = pa.table({"t": [1, 2], "k": ["a", None]})
    >>> sum_of(rows) == sum_of(pa.concat_tables([rows.slice(0, 1), rows.slice(1)]))
    True
    >>> sum_of(rows) == sum_of(rows.slice(1))
    False
    """
    digest = hashlib.sha256()
    for table in tables:
        digest.update(f"{table.num_rows} {table.num_columns};".encode())
        for field, column in zip(table.schema, table.columns, strict=True):
            digest.update(f"{field.name!r} {field.type};".encode())
            whole: Any = column
            if any(test(field.type) for test in _OF_BYTES):  # more than one array of text may hold
                whole = whole.cast(pa.large_binary())
            if isinstance(whole, pa.ChunkedArray):
                whole = whole.combine_chunks()
            _add(digest, whole)
    return digest.hexdigest()[:DIGITS]


def _add(digest: Any, values: Any) -> None:
    """The values of an array."""
    if isinstance(values, pa.ExtensionArray):
        return _add(digest, values.storage)
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _add(digest, values.dictionary_decode())
    digest.update(np.packbits(np.asarray(values.is_valid())).data)
    if pa.types.is_struct(kind):
        for field in values.flatten():  # null where the struct is
            _add(digest, field)
    elif not pa.types.is_null(kind):
        _add_known(digest, values.drop_null())
    return None


def _add_known(digest: Any, values: Any) -> None:
    """Values none of which is null."""
    kind = values.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _add_stretches(digest, values, [values.values])
    elif pa.types.is_map(kind):
        _add_stretches(digest, values, [values.keys, values.items])
    elif pa.types.is_fixed_size_list(kind):
        _add(digest, values.flatten())
    elif any(test(kind) for test in _OF_BYTES):
        _add_bytes(digest, values.cast(pa.large_binary()))
    elif pa.types.is_boolean(kind):
        digest.update(np.packbits(np.asarray(values)).data)
    else:
        _add_fixed(digest, values)


_OF_BYTES = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
)  # fmt: skip


def _add_stretches(digest: Any, values: Any, children: list[Any]) -> None:
    """Lists: how long each is, and what they hold."""
    offsets = np.asarray(values.offsets).astype(np.int64)
    digest.update(np.diff(offsets).data)
    for child in children:
        _add(digest, child.slice(int(offsets[0]), int(offsets[-1] - offsets[0])))


def _add_bytes(digest: Any, values: Any) -> None:
    """Values of some bytes each."""
    if len(values):
        _, places, data = values.buffers()
        offsets = np.frombuffer(places, np.int64)[values.offset :][: len(values) + 1]
        digest.update(np.diff(offsets).data)
        if offsets[-1] > offsets[0]:
            digest.update(data[int(offsets[0]) : int(offsets[-1])])


def _add_fixed(digest: Any, values: Any) -> None:
    """Values of so many bytes each."""
    if len(values):
        width, data = values.type.byte_width, values.buffers()[1]
        digest.update(data[values.offset * width : (values.offset + len(values)) * width])
