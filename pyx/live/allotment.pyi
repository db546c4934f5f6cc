from typing import Any

from numpy import float64
from numpy.typing import NDArray

_F64 = NDArray[float64]

def smoothed(found: _F64, proposed: _F64, reach: int, prior: float) -> _F64: ...
def best_smoothing(
    found: _F64, proposed: _F64, reaches: tuple[int, ...], priors: tuple[float, ...]
) -> tuple[int, float]: ...
def totals(directions: list[Any]) -> list[float]: ...
def allot_together(
    directions: list[Any],  # windjoin.kernels.shedding.learned.Direction
    work: float,
    partial: bool,
) -> list[tuple[float, list[_F64], list[_F64], float]]: ...
def ranges(
    windows: Any,  # windjoin.kernels.shedding.learned.BasicWindows
    share: _F64,  # by basic window, 0 .. 1
    worth: _F64,
    most_ranges: int,
) -> list[tuple[int, int]]: ...
