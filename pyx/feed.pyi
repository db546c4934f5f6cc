from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Feed:
    @property
    def results(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __init__(self, number: int, stores: Any, clocks: Any, pipeline: Any, care: Any) -> None: ...
    def push(
        self,
        time: NDArray[np.int64],
        columns: list[Any],  # int64 or float64 arrays
        keys: list[Any],  # int64 arrays
        wides: list[Any],  # (offsets, items), of int32 or int64; or (None, matrix)
    ) -> list[NDArray[np.int64]] | None: ...
