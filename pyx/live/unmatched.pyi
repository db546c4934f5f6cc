import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.column import Ring

_I64 = NDArray[np.int64]

@disjoint_base
class Unmatched:
    first: int
    tail: int
    passed: int
    @property
    def nbytes(self) -> int: ...
    def admit(
        self,
        times: _I64,  # const int64_t[::1], in order of arrival
        usable: NDArray[np.bool_] | None,
    ) -> None: ...
    def begin_at(self, first: int, passed: int) -> None: ...
    def mark(self, rows: _I64) -> None: ...
    def mark_new(self, rows: _I64) -> _I64: ...
    def has(self, rows: _I64) -> NDArray[np.bool_]: ...
    def before(self, times: Ring, horizon: int, all_of_them: bool = False) -> _I64: ...
