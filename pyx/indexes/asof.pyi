from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

_I64 = NDArray[np.int64]

@disjoint_base
class AsofMerge:
    def __new__(
        cls,
        left_time: _I64,  # const int64_t[::1], non-decreasing
        left_codes: NDArray[np.int32] | None,  # const int32_t[::1], < n_codes; negative: no key
        right_time: _I64,  # const int64_t[::1], non-decreasing
        right_codes: NDArray[np.int32] | None,
        n_codes: int,  # int64_t
    ) -> Self: ...
    def restart(self) -> None: ...
    def backward(
        self,
        first: int,
        last: int,
        at: int,
        tolerance: int,  # uint64_t
        found: _I64,  # int64_t[::1], by left row, written
        chain: _I64 | None = None,  # by right row, written
    ) -> int: ...
    def forward(
        self,
        first: int,
        last: int,
        at: int,
        tolerance: int,  # uint64_t
        strict: bool,
        found: _I64,
        chain: _I64 | None = None,
    ) -> int: ...
    def pairs(
        self,
        first: int,
        last: int,
        most: int,
        ways: tuple[_I64 | None, _I64 | None],
        chains: tuple[_I64 | None, _I64 | None],
        tolerances: tuple[int, int],  # uint64_t
        left: _I64 | None = None,  # written
        right: _I64 | None = None,
    ) -> int: ...

@disjoint_base
class AsofRows(Index):
    def __new__(
        cls,
        keyed: bool,
        back: bool,
        ahead: bool,
        window_back: int,  # int64_t
        window_ahead: int,
        most: int,
    ) -> Self: ...
