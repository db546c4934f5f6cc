import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.index import PairFilter

MEASURES: dict[str, int]
OPERATIONS: dict[str, int]
_Measure = tuple[str, bool, bool, str, float]  # name, of doubles, turned, operation, threshold
_Views = tuple[ColumnView, ColumnView]  # int64 starts (addresses), int32 lengths

@disjoint_base
class MeasureFilter(PairFilter):
    def __init__(self, measure: _Measure, probing: _Views, target: _Views) -> None: ...

def measure_pairs(
    measure: _Measure,
    left: _Views,
    right: _Views,
    left_rows: NDArray[np.int64],  # const int64_t[::1]
    right_rows: NDArray[np.int64],  # const int64_t[::1], as many
) -> NDArray[np.float64]: ...
