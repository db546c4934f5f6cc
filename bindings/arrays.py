"""Calculated values as Arrow arrays, the way back from `windjoin.columns.load`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from windjoin.columns import Values
from windjoin.evaluate import counted_in
from windjoin.kinds import arrow_type, kind_of
from windjoin.operands import words


def as_array(values: Values, arrow: pa.DataType | None = None, fit: Any = None) -> Any:
    """``values`` as an array of ``arrow``, by default the type in which their kind leaves.

    ``fit`` takes the mantissas and gives those that the type can hold, or raises.
    """
    arrow = arrow_type(values.kind) if arrow is None else arrow
    if values.kind.family == "null":
        return pa.nulls(len(values.data))
    if values.kind.family in ("text", "binary"):
        return values.data.cast(arrow)
    missing = None if values.valid is None else ~values.valid
    if not values.kind.exact:
        return pa.array(values.data, arrow, mask=missing)
    mantissas = counted_in(min(values.kind.step, kind_of(arrow).step), values)
    mantissas = mantissas if fit is None else fit(mantissas)
    if values.kind.family == "decimal":
        return _decimals(mantissas, values, arrow)
    plain = pa.array(mantissas.astype(np.int64, copy=False), pa.int64(), mask=missing)
    if arrow.bit_width == 32:
        return plain.cast(pa.int32()).view(arrow)
    return plain.view(arrow)


def _decimals(mantissas: Any, values: Values, arrow: Any) -> Any:
    data: Any = words(mantissas, arrow.bit_width // 64).data
    mask: Any = None if values.valid is None else np.packbits(values.valid, bitorder="little")
    buffers = [None if mask is None else pa.py_buffer(mask), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow, len(mantissas), buffers)
