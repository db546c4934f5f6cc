from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Borrowed: ...

@disjoint_base
class Reader:
    # (number, dtype, width) of each column; width: 0 numbers, -1 lists of them, else vectors
    def __new__(cls, columns: Iterable[tuple[int, np.dtype[Any], int]]) -> Self: ...
    # an array of every column of numbers, (offsets, values) of the others
    def read(self, table: Any) -> list[NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]] | None: ...
