from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Index:
    @property
    def nbytes(self) -> int: ...
    @property
    def learned_text(self) -> str: ...
    @property
    def unsuited(self) -> bool: ...
    @property
    def n_keys(self) -> int: ...
    @property
    def forgets(self) -> bool: ...
    def insert_arrays(
        self,
        values: Any,  # (const int32_t[::1] or None, list of const int64_t[::1])
        times: NDArray[np.int64],  # const int64_t[::1]
        rows: NDArray[np.int64],  # const int64_t[::1]
    ) -> None: ...
    def expire_before(self, horizon: int) -> None: ...  # int64_t
    def forget(self, gone: Any) -> None: ...  # const uint8_t[::1], by code
    def clear(self) -> None: ...
    def compact(self) -> Any: ...  # None, or of key codes: one byte per code, still there

@disjoint_base
class Prober:
    @property
    def nbytes(self) -> int: ...
    @property
    def compared(self) -> int: ...

@disjoint_base
class PairFilter: ...
