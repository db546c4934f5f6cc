from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class ColumnView:
    def __init__(self, array: NDArray[Any] | None = None, first: int = 0) -> None: ...

@disjoint_base
class Ring(ColumnView):
    capacity: int
    itemsize: int
    dtype: np.dtype[Any]
    nbytes: int
    def __init__(self, dtype: Any, capacity: int) -> None: ...
    def put(self, row: int, values: NDArray[Any]) -> None: ...
    def set(
        self,
        rows: NDArray[np.int64],  # const int64_t[::1]
        values: NDArray[np.int64],  # const int64_t[::1], as long as rows
    ) -> None: ...
    def get(self, row: int, n: int) -> NDArray[Any]: ...
    def take(
        self,
        rows: NDArray[np.int64],  # const int64_t[::1]
    ) -> NDArray[Any]: ...
    def fill(
        self,
        rows: NDArray[np.int64],  # const int64_t[::1]
        value: int,  # int64_t
    ) -> None: ...
    def renumber(
        self,
        head: int,
        tail: int,
        codes: NDArray[np.int32],  # const int32_t[::1], by code
    ) -> None: ...
    def resize(self, capacity: int, head: int, tail: int) -> None: ...
    def first_alive(self, head: int, tail: int, horizon: int) -> int: ...

def time_order(times: NDArray[np.int64]) -> NDArray[np.int64]: ...  # const int64_t[::1]
def in_order(times: NDArray[np.int64]) -> bool: ...  # const int64_t[::1]
