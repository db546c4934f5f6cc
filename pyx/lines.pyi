import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.index import Index

@disjoint_base
class KeyLines(Index):
    def insert(
        self,
        codes: NDArray[np.int32],  # const int32_t[::1]; negative: no key
        times: NDArray[np.int64],  # const int64_t[::1]
        rows: NDArray[np.int64],  # const int64_t[::1]
    ) -> None: ...
    def sweep(self) -> bytearray: ...
