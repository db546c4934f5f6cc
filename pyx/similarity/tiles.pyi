from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.similarity.blocks import RowIndex

KINDS: dict[str, int]

@disjoint_base
class VectorTiles(RowIndex):
    def __new__(cls, measure: str, doubles: bool) -> Self: ...
    @staticmethod
    def load(
        measure: str,  # one of KINDS
        doubles: bool,
        varlen_rows: tuple[Any, Any],  # const int64_t[::1] starts, const int32_t[::1] lengths
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        first: int = 0,  # int64_t
    ) -> VectorTiles: ...
