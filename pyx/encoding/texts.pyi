from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

class _BytesColumn(Protocol):
    @property
    def offsets(self) -> NDArray[np.int64]: ...  # const int64_t[::1], (n + 1,), non-decreasing
    @property
    def data(self) -> NDArray[np.uint8]: ...  # const uint8_t[::1]

def encode_texts(columns: Sequence[_BytesColumn]) -> tuple[list[NDArray[np.int32]], int]: ...
