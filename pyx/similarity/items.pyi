import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.indexes.lists import KeyLists

@disjoint_base
class ItemLists(KeyLists):
    @staticmethod
    def of_sets(
        records: tuple[NDArray[np.int64], NDArray[np.int32]],  # starts and lengths
        times: NDArray[np.int64],
        first: int = 0,
    ) -> ItemLists: ...
    @property
    def learned_text(self) -> str: ...
    @property
    def misfit(self) -> bool: ...
    def sweep(self) -> bytes: ...
