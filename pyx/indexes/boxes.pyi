from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

@disjoint_base
class ValueBoxes(Index):
    def __new__(cls, values: int, span: int) -> Self: ...
    @staticmethod
    def load(
        values: Sequence[NDArray[np.int64]],  # const int64_t[::1] each, 1 to 4
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        rows_per_run: int,  # int64_t, > 0
        first: int = 0,  # int64_t
    ) -> ValueBoxes: ...
    def compact(self) -> None: ...
