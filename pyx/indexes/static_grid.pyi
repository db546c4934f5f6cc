from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

@disjoint_base
class StaticBandGrid(Index):
    def __new__(cls) -> Self: ...
    @staticmethod
    def load(
        values: NDArray[np.int64],  # const int64_t[::1]: integers, or sortable doubles
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        width: float,  # double, > 0: half of a usual band
        real: bool,
        span: int,  # int64_t, >= 0: of a usual window, from its begin to its end
        first: int = 0,  # int64_t
    ) -> StaticBandGrid: ...
