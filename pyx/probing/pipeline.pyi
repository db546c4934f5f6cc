from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from windjoin.pyx.base.output import Output
from windjoin.pyx.indexes.postings import KeyPostings
from windjoin.pyx.probing.hop_chain import HopChain

class Pipeline(HopChain):
    def run_range(self, first: int, last: int, out: Output) -> None: ...  # int64_t
    def run_partials(
        self,
        rows: Sequence[NDArray[np.int64]],  # const int64_t[::1], one per bound stream
        out: Output,
    ) -> None: ...
    def run_postings(self, postings: KeyPostings, out: Output) -> None: ...
