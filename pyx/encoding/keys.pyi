from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

class _BytesColumn(Protocol):
    @property
    def offsets(self) -> NDArray[np.int64]: ...  # const int64_t[::1], (n + 1,), non-decreasing
    @property
    def data(self) -> NDArray[np.uint8]: ...  # const uint8_t[::1]

@disjoint_base
class KeySpace:
    @property
    def used(self) -> int: ...
    @property
    def n_codes(self) -> int: ...
    @property
    def close_together(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def encode(
        self,
        keys: Any,  # const int64_t[::1]; a _BytesColumn in a BytesSpace
        usable: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.int32]: ...
    @property
    def close_from(self) -> int | None: ...
    def reserve(self, keys: int, close_from: int | None = None) -> None: ...
    def keys(self) -> NDArray[np.int64]: ...
    def compact(self, live: NDArray[np.uint8] | bytearray) -> None: ...  # const uint8_t[::1]
    def forget(self, live: NDArray[np.uint8]) -> bytearray: ...  # const uint8_t[::1]
    def renumber(
        self,
        live: NDArray[np.uint8],  # const uint8_t[::1], by code
        classes: int = 1,  # int64_t
    ) -> NDArray[np.int32]: ...
    def first_codes(self, n: int) -> bytearray: ...  # int64_t

@disjoint_base
class BytesSpace(KeySpace):
    def encode(
        self, column: _BytesColumn, usable: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int32]: ...
    def take(
        self,
        codes: NDArray[np.int32],  # const int32_t[::1]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...

def encode_dense(
    keys: NDArray[np.int64],  # const int64_t[::1], low <= key < low + 2**31
    low: int,  # int64_t
    usable: NDArray[np.bool_] | None = None,
) -> NDArray[np.int32]: ...
def encode_pairs(
    space: KeySpace,
    first: NDArray[np.int32],  # const int32_t[::1]
    second: NDArray[np.int32],  # const int32_t[::1], as long as first
) -> NDArray[np.int32]: ...
