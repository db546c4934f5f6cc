from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

@disjoint_base
class UdfScanIndex(Index):
    @staticmethod
    def load(
        columns: Sequence[NDArray[np.int64]],  # const int64_t[::1]
        times: NDArray[np.int64],  # const int64_t[::1]
        function: int,  # size_t
        bound: int,
        first: int = 0,
    ) -> UdfScanIndex: ...
