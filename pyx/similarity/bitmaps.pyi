from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.similarity.blocks import BlockIndex

@disjoint_base
class SetBitmaps(BlockIndex):
    learned: int  # times that popular items were given lanes
    def __new__(cls, weighted: bool) -> Self: ...
    @staticmethod
    def load(
        weighted: bool,
        varlen_rows: tuple[Any, Any],  # const int64_t[::1] starts, const int32_t[::1] lengths
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        first: int = 0,  # int64_t
    ) -> SetBitmaps: ...
    @property
    def exact_blocks(self) -> float: ...  # 0 .. 1
    @property
    def owners(self) -> tuple[int, float]: ...  # items with a lane, share of what was seen lately
