from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.routing.segment_table import SegmentTable

_Range = tuple[int, int]

@disjoint_base
class Voids(Mapping[int, tuple[_Range, ...]]):
    def triples(self) -> list[list[int]]: ...
    def __getitem__(self, host: int, /) -> tuple[_Range, ...]: ...
    def get(self, key: object, default: Any = None, /) -> Any: ...
    def __iter__(self) -> Iterator[int]: ...
    def __len__(self) -> int: ...

@disjoint_base
class RouteTable(SegmentTable):
    cost: float  # of the path found last, in messages per row of its segment
    order: int  # of the streams on it: which of the candidates
    random: int  # uint64; 0: covers are greedy, else the state of the random choice
    def __init__(self, windows: Sequence[int], hosts: int, random: int = 0) -> None: ...
    def set_orders(
        self,
        orders: NDArray[np.int32],  # (streams, candidates, streams - 1); -1 where there is none
        factors: NDArray[np.float64],  # same shape
    ) -> None: ...
    def begin(
        self,
        loads: NDArray[np.float64],  # per host number, >= 0; infinite where there is no host
        open_hosts: list[int],  # ascending, at least one
        crowded: float,
        most: int,
    ) -> None: ...
    def place(self, stream: int, start: int, stop: int, copies: int) -> tuple[int, ...]: ...
    def path(
        self, stream: int, start: int, stop: int
    ) -> list[tuple[int, tuple[int, ...], Voids]]: ...
