from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.index import Index

@disjoint_base
class RankedCells(Index):
    def __new__(cls, width: float, real: bool) -> Self: ...
    @staticmethod
    def load(
        values: NDArray[np.int64],  # const int64_t[::1]: integers, or sortable doubles
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        width: float,  # double, > 0: of a cell
        real: bool,
        first: int = 0,  # int64_t
    ) -> RankedCells: ...
