import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class CoverProblem:
    def __init__(
        self,
        held: NDArray[np.bool_],  # (hosts, segments), both >= 1
        weights: NDArray[np.float64],  # (hosts,), whole numbers 1 .. 1024
    ) -> None: ...
    def cover(self) -> list[int] | None: ...
    def seconds(self, rounds: int) -> float: ...
