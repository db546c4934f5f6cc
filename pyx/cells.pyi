from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.index import Index

@disjoint_base
class ValueCells(Index):
    def __new__(cls, width: float, real: bool) -> Self: ...
    def insert(
        self,
        values: NDArray[np.int64],  # const int64_t[::1]: integers, or sortable doubles
        times: NDArray[np.int64],  # const int64_t[::1]
        rows: NDArray[np.int64],  # const int64_t[::1]
    ) -> None: ...
    def sweep(self) -> None: ...
