from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def close_together(
    columns: Sequence[NDArray[np.int64]],
    widest: int,  # uint64_t, below 2**63
) -> tuple[int, int] | None: ...
def encode_integers(
    columns: Sequence[NDArray[np.int64]],
) -> tuple[list[NDArray[np.int32]], int]: ...
