from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.similarity.blocks import RowIndex

@disjoint_base
class ByteSegments(RowIndex):
    def __new__(cls) -> Self: ...
    @staticmethod
    def load(
        varlen_rows: tuple[Any, Any],  # const int64_t[::1] starts, const int32_t[::1] lengths
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        first: int = 0,  # int64_t
    ) -> ByteSegments: ...
    @property
    def shape(self) -> tuple[int, int] | None: ...
