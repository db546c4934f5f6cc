from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.index import Index

@disjoint_base
class Limited(Index):
    target: int
    proposed: NDArray[np.float64]
    arrived: NDArray[np.float64]  # None of a first hop
    def __init__(
        self,
        index: Index,
        start: int,
        start_time: ColumnView,
        target: int,
        time: ColumnView,
        block: int,
        width: int,
        first: int,
        n_windows: int,
        before: Any = None,  # (Limited, ColumnView) of the hop before
        rows: Any = None,  # Extent of the target, where the index looks at every row
    ) -> None: ...
    def choose(self, ages: Sequence[tuple[int, int]]) -> None: ...  # least, most; MOST_AGES
    @property
    def given(self) -> int: ...
