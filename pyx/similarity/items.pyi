import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.indexes.postings import KeyPostings

@disjoint_base
class ItemPostings(KeyPostings):
    @staticmethod
    def of_sets(
        varlen_rows: tuple[NDArray[np.int64], NDArray[np.int32]],  # starts and lengths
        times: NDArray[np.int64],
        first: int = 0,
    ) -> ItemPostings: ...
    @property
    def learned_text(self) -> str: ...
    @property
    def unsuited(self) -> bool: ...
    def compact(self) -> bytes: ...
