import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.column import ColumnView

_Measure = tuple[str, bool, bool, str, float]  # name, of doubles, turned, operation, threshold
_Views = tuple[ColumnView, ColumnView]  # int64 starts (addresses), int32 lengths, -1: no value

@disjoint_base
class Scorer:
    def __init__(self, measure: _Measure, left: _Views, right: _Views, counts: bool) -> None: ...
    def fill(
        self,
        left_rows: NDArray[np.int64],  # const int64_t[::1]
        right_rows: NDArray[np.int64],  # const int64_t[::1], as many
        out: NDArray[np.int64],  # int64_t[::1], as many, written: doubles, or counts
    ) -> None: ...
