import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

@disjoint_base
class KeyPostings(Index):
    @staticmethod
    def load(
        codes: NDArray[np.int32],  # const int32_t[::1], < n_codes; negative: no key
        times: NDArray[np.int64],  # const int64_t[::1], non-decreasing
        n_codes: int,  # int64_t
        first: int = 0,  # int64_t
    ) -> KeyPostings: ...
