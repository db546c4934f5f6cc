from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.column import ColumnView
from windjoin.pyx.index import Asker, Index

@disjoint_base
class GroupAsker(Asker):
    def __init__(
        self,
        # at most 4 of (stream that asks, its times, its window, the target's window,
        # (measure, views of asking rows, views of the target's rows))
        parts: Sequence[tuple[int, ColumnView, int, int, tuple[Any, Any, Any]]],
    ) -> None: ...

@disjoint_base
class BlockIndex(Index):
    @property
    def nbytes(self) -> int: ...
    def expire(self, horizon: int) -> None: ...  # int64_t
    def sweep(self) -> bytes: ...
    def insert(
        self,
        records: tuple[Any, Any],  # const int64_t[::1] starts, const int32_t[::1] lengths
        times: NDArray[np.int64],  # const int64_t[::1]
        rows: NDArray[np.int64],  # const int64_t[::1]
    ) -> None: ...

@disjoint_base
class RowIndex(BlockIndex): ...
