from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Clock:
    newest: int
    promised: int
    lateness: int
    def __init__(self, lateness: int = 0) -> None: ...
    @property
    def watermark(self) -> int: ...

@disjoint_base
class Counts:
    rows_in: int
    unusable: int
    late: int
    expired: int

@disjoint_base
class Extent:
    head: int
    tail: int
    horizon: int
    @property
    def most(self) -> int: ...
    def note(self) -> None: ...
    def copy(self) -> Extent: ...

@disjoint_base
class Store:
    @property
    def whole(self) -> bool: ...
    def __init__(self, window: Any, counts: Counts, spaces: Any) -> None: ...

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
