from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.encoding.keys import KeySpace

class _BytesColumn(Protocol):
    @property
    def offsets(self) -> NDArray[np.int64]: ...  # const int64_t[::1], (n + 1,), non-decreasing
    @property
    def data(self) -> NDArray[np.uint8]: ...  # const uint8_t[::1]

@disjoint_base
class BytesSpace(KeySpace):
    def encode(
        self, column: _BytesColumn, usable: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int32]: ...
    def take(
        self,
        codes: NDArray[np.int32],  # const int32_t[::1]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]: ...
