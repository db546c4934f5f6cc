from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.index import Index, Prober
from windjoin.pyx.base.output import Runner
from windjoin.pyx.encoding.keys import KeySpace

@disjoint_base
class HopChain(Runner):
    on_progress: Callable[[int], object] | None
    wary: bool
    on_raised: Callable[[dict[int, NDArray[np.int64]]], object] | None
    @property
    def raised(self) -> bool: ...
    def __new__(cls, stream: int, time: ColumnView, window: int, block: int) -> Self: ...
    @property
    def started(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def bind(self, stream: int) -> None: ...
    def number(self, stream: int, numbers: ColumnView) -> None: ...  # int64, a plain array
    def mark(
        self,
        stream: int,
        marks: NDArray[np.uint8],  # by row, written
        only: bool = False,
    ) -> None: ...
    def add_hop(
        self,
        stream: int,
        window: int,  # int64_t
        index: Index,
        codes: Sequence[tuple[int, ColumnView]] = (),  # int32 columns
        spaces: Sequence[KeySpace] = (),  # one less than codes
        ranges: Sequence[tuple[int, tuple[Any, ...]]] = (),  # by value, 16 at most
        operands: Sequence[tuple[int, ColumnView]] = (),  # of a function, 32 at most
        prober: Prober | None = None,
        filters: Sequence[tuple[Any, ...]] = (),
        before: bool = False,
        time: ColumnView | None = None,
    ) -> None: ...
    def avoid(
        self,
        hop: int,
        starts: NDArray[np.int64],  # const int64_t[::1], ascending
        lasts: NDArray[np.int64],  # const int64_t[::1], starts[i] <= lasts[i] < starts[i + 1]
    ) -> None: ...
    def measured(self) -> list[dict[str, Any]]: ...
