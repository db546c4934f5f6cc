from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Borrowed: ...

@disjoint_base
class Reader:
    # (number, form, size, dtype) of each column
    def __new__(cls, columns: Iterable[tuple[int, str, int, np.dtype[Any]]]) -> Self: ...
    # an array of every column of numbers, (offsets, values) of the others; the two masks
    def read(
        self, table: Any
    ) -> (
        tuple[
            list[NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]],
            NDArray[np.bool_] | None,
            NDArray[np.bool_] | None,
        ]
        | None
    ): ...
