from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.index import Index

@disjoint_base
class TimeSlices(Index):
    def __new__(cls, length_of_slice: int, values: bool) -> Self: ...
    @staticmethod
    def load(
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        values: NDArray[np.int64] | None,  # const int64_t[::1]; None: a scan
        rows_per_slice: int,  # int64_t, > 0
        first: int = 0,  # int64_t
    ) -> TimeSlices: ...
    def insert(
        self,
        values: NDArray[np.int64] | None,  # const int64_t[::1]; None: a scan
        times: NDArray[np.int64],  # const int64_t[::1]
        rows: NDArray[np.int64],  # const int64_t[::1]
    ) -> None: ...
    def sweep(self) -> None: ...
