from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Watermark:
    newest: int
    promised: int
    silenced: int
    lateness: int
    def __init__(self, lateness: int = 0) -> None: ...
    @property
    def watermark(self) -> int: ...
    def split_late(
        self,
        times: NDArray[np.int64],  # const int64_t[::1]
        bad: NDArray[np.uint8] | None,  # const uint8_t[::1]
    ) -> tuple[int, bool, NDArray[np.bool_] | None, int]: ...

@disjoint_base
class Allowance:
    rows: int
    until: int
    def follow(self, clocks: Iterable[Watermark]) -> None: ...
    @property
    def over(self) -> bool: ...

@disjoint_base
class Counts:
    rows_in: int
    unusable: int
    late: int
    expired: int

@disjoint_base
class Extent:
    head: int
    tail: int
    horizon: int
    hold: int
    owed: int
    @property
    def most(self) -> int: ...
    def settle(self) -> None: ...
    def copy(self) -> Extent: ...

@disjoint_base
class Taker:
    def __init__(self, index: Any, source: Any, spaces: Any) -> None: ...

@disjoint_base
class Store:
    def __init__(self, window: Any, counts: Counts, spaces: Any) -> None: ...
    def append(
        self,
        time: NDArray[np.int64],
        columns: list[Any],  # int64 or float64 arrays
        codes: list[NDArray[np.int32]],
        varlen_rows: list[Any],  # (starts, lengths, content)
        numbers: NDArray[np.int64],
    ) -> None: ...
    def expire(self, horizon: int) -> int: ...

def expire(stores: list[Store], clocks: list[Watermark]) -> int: ...
