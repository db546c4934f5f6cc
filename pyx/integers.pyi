from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def encode_integers(
    columns: Sequence[NDArray[np.int64]],
) -> tuple[list[NDArray[np.int32]], int]: ...
