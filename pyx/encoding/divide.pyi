import numpy as np
from numpy.typing import NDArray

def divide(
    keys: NDArray[np.int64],  # const int64_t[::1]
    times: NDArray[np.int64],  # const int64_t[::1], as long
    groups: int,  # 256 at most
    low: int | None,  # int64_t, the least key, all less than groups << shift away
    shift: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
