from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

@disjoint_base
class BasicWindows(Index):
    def __new__(
        cls,
        length_of_slice: int,
        values: bool,
        function: int = 0,  # size_t: address of a `compiled_scan`
        bound: int = 0,  # operands that partial results bring, 32 at most
        operands: int = 0,  # operands of the rows, 32 at most
    ) -> Self: ...
    @staticmethod
    def load(
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        values: NDArray[np.int64] | None,  # const int64_t[::1]; None: a scan
        rows_per_slice: int,  # int64_t, > 0
        first: int = 0,  # int64_t
    ) -> BasicWindows: ...
    @staticmethod
    def load_operands(
        columns: Sequence[NDArray[np.int64]],  # const int64_t[::1] each
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        rows_per_slice: int,  # int64_t, > 0
        function: int,  # size_t
        bound: int,
        first: int = 0,  # int64_t
    ) -> BasicWindows: ...
    def compact(self) -> None: ...
