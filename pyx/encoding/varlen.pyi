from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.encoding.keys import KeySpace

def set_varlen_rows(
    offsets: NDArray[np.int64],  # const int64_t[::1], (n + 1,)
    codes: NDArray[np.int32],  # int32_t[::1]: rearranged; negative: no item
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def set_rows(
    space: KeySpace,
    offsets: NDArray[Any],  # int32 or int64, (n + 1,), contiguous, non-decreasing
    items: NDArray[Any],  # int32 or int64, contiguous
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]: ...
def array_rows(
    offsets: NDArray[np.int64],
    values: NDArray[Any],  # contiguous
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]: ...
def vector_rows(
    matrix: NDArray[Any],  # C-contiguous, (n, width)
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]: ...
def weighted_varlen_rows(
    offsets: NDArray[np.int64],  # const int64_t[::1], (n + 1,)
    codes: NDArray[np.int32],  # const int32_t[::1]; negative: no item
    weights: NDArray[np.float64],  # const double[::1]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
def contents(
    starts: NDArray[np.int64],  # const int64_t[::1], addresses
    lengths: NDArray[np.int32],  # const int32_t[::1]
    dtype: Any,
) -> tuple[NDArray[np.int64], NDArray[Any]]: ...
def weighted_contents(
    starts: NDArray[np.int64],  # const int64_t[::1], addresses
    lengths: NDArray[np.int32],  # const int32_t[::1]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
def mark_codes(
    starts: ColumnView,
    lengths: ColumnView,
    head: int,  # int64_t
    tail: int,  # int64_t
    weighted: bool,
    live: NDArray[np.uint8],  # uint8_t[::1], by code, written
) -> None: ...
def renumber_codes(
    starts: ColumnView,
    lengths: ColumnView,
    head: int,  # int64_t
    tail: int,  # int64_t
    weighted: bool,
    renumbered: NDArray[np.int32],  # const int32_t[::1], by code
) -> None: ...
