from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class KeySpace:
    @property
    def used(self) -> int: ...
    @property
    def n_codes(self) -> int: ...
    @property
    def close_together(self) -> bool: ...
    @property
    def forgets(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def encode(
        self,
        keys: Any,  # const int64_t[::1]; a BytesColumn in a BytesSpace
        usable: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.int32]: ...
    @property
    def close_from(self) -> int | None: ...
    def reserve(self, keys: int, close_from: int | None = None) -> None: ...
    def keys(self) -> NDArray[np.int64]: ...
    def compact(self, live: NDArray[np.uint8] | bytearray) -> None: ...  # const uint8_t[::1]
    def clear(self) -> None: ...
    def forget(self, live: NDArray[np.uint8]) -> bytearray: ...  # const uint8_t[::1]
    def renumber(
        self,
        live: NDArray[np.uint8],  # const uint8_t[::1], by code
        classes: int = 1,  # int64_t
    ) -> NDArray[np.int32]: ...
    def first_codes(self, n: int) -> bytearray: ...  # int64_t

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
