"""Arrow columns as arrays the evaluator can compute with.

No copy where Arrow's layout is already NumPy's (int64, float64, timestamps ... in one chunk without
nulls); otherwise one vectorised pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from numpy.typing import NDArray
from windjoin import exact
from windjoin.kinds import Kind, kind_of, value_type
from windjoin.layout import laid_out

Bools = NDArray[np.bool_]


@dataclass(slots=True)
class Values:
    """Values of one kind.  ``data``: mantissas, doubles or booleans as a NumPy array (without
    dimensions for a constant), text and binary as a large Arrow array.  ``valid``: None if all are.
    ``raised``: where a user's function did, so that there is no value; None: nowhere.
    """

    kind: Kind
    data: Any
    valid: Bools | None = None
    raised: Bools | None = None

    def part(self, first: int, last: int) -> Values:
        """Those of rows [first, last); not of a constant."""
        valid = None if self.valid is None else self.valid[first:last]
        raised = None if self.raised is None else self.raised[first:last]
        return Values(self.kind, self.data[first:last], valid, raised)


def one_chunk(column: Any) -> Any:
    """A column as one Arrow array, with its values decoded; strings in the large layout."""
    plain = value_type(column.type)
    kind = kind_of(plain)
    if kind.family == "text":
        plain = pa.large_string()
    elif kind.family == "binary":
        plain = pa.large_binary()
    return together(column if column.type == plain else laid_out(column, plain))


def together(column: Any) -> Any:
    """An array, or all chunks of a chunked array as one."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def load(column: Any) -> Values:
    """An Arrow array or chunked array as `Values`."""
    array = one_chunk(column)
    kind = kind_of(array.type)
    valid = _valid(array)
    family = kind.family
    if family in ("text", "binary", "nested"):
        return Values(kind, array, valid)
    if family == "null":
        return Values(kind, np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_))
    if family == "bool":
        data: Any = _bits(array.buffers()[1], array.offset, len(array))
    elif family == "float":
        data = _fixed(array, np.dtype(f"f{array.type.bit_width // 8}"))
        data = data.astype(np.float64, copy=False)
        if has_nan(data):
            not_nan = data == data
            valid = not_nan if valid is None else valid & not_nan
    elif family == "decimal":
        data = _decimals(array)
    else:
        data = _integers(array)
    if valid is not None:  # what lies under a null is arbitrary; 0 keeps intervals tight
        data = np.where(valid, data, data.dtype.type(0) if data.dtype != object else 0)
    return Values(kind, data, valid)


def has_nan(data: NDArray[np.float64]) -> bool:
    """Whether any value is NaN: then so is the smallest."""
    if not data.size:
        return False
    least = data.min()
    return bool(least != least)


def _valid(array: Any) -> Bools | None:
    if array.null_count == 0:
        return None
    if pat.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return _bits(array.buffers()[0], array.offset, len(array))


def _bits(buffer: Any, offset: int, length: int) -> Bools:
    if buffer is None or length == 0:
        return np.zeros(length, np.bool_)
    packed = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + length + 7) // 8]
    unpacked = np.unpackbits(packed, bitorder="little")[offset % 8 : offset % 8 + length]
    return unpacked.view(np.bool_)


def _fixed(array: Any, dtype: np.dtype[Any], words: int = 1) -> NDArray[Any]:
    """The values buffer as it lies, ``words`` items of ``dtype`` for each value."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array) * words, dtype)
    start = array.offset * words * dtype.itemsize
    return np.frombuffer(buffer, dtype, len(array) * words, start)


def _integers(array: Any) -> NDArray[Any]:
    unsigned = pat.is_unsigned_integer(array.type)
    size = array.type.bit_width // 8
    data = _fixed(array, np.dtype(f"{'u' if unsigned else 'i'}{size}"))
    return data if size == 8 else data.astype(np.int64)


def _decimals(array: Any) -> NDArray[Any]:
    """Mantissas: int64 where all fit, else Python integers put together from 64-bit words."""
    words, rest = divmod(array.type.bit_width, 64)
    if rest:
        return _fixed(array, np.dtype("i4")).astype(np.int64)
    parts = _fixed(array, np.dtype("i8"), words).reshape(len(array), words)
    low = parts[:, 0]
    if all((parts[:, word] == low >> 63).all() for word in range(1, words)):
        return np.ascontiguousarray(low)
    total = parts[:, words - 1].astype(object)
    for word in range(words - 2, -1, -1):
        total = total * 2**64 + parts[:, word].view(np.uint64).astype(object)
    return exact.narrowed(total)
