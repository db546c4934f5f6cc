from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Pages:
    def __new__(
        cls, layouts: Sequence[tuple[str, int, int, bool, int]], numbers: Sequence[int]
    ) -> Self: ...
    @property
    def nbytes(self) -> int: ...
    def append(self, table: Any, narrow: bool) -> None: ...
    def begin(self, row: int) -> None: ...
    def chill(self, opened: Callable[[], int]) -> None: ...
    def cool(self) -> None: ...
    @property
    def file_bytes(self) -> int: ...
    def expire(self, head: int) -> None: ...

@disjoint_base
class Gatherer:
    def __new__(
        cls,
        columns: Sequence[tuple[int, Pages | None, int]],
        taken_over: Callable[[int], Any],
        lacking: bool = False,
    ) -> Self: ...
    def gather(self, rows: list[NDArray[np.int64]]) -> list[Any]: ...  # contiguous
