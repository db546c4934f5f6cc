from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Clock:
    newest: int
    promised: int
    lateness: int
    def __init__(self, lateness: int = 0) -> None: ...
    @property
    def watermark(self) -> int: ...

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
    def copy(self) -> Extent: ...

@disjoint_base
class Store:
    @property
    def whole(self) -> bool: ...
    def __init__(self, window: Any, counts: Counts, spaces: Any) -> None: ...

@disjoint_base
class Feed:
    @property
    def results(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __init__(self, number: int, stores: Any, clocks: Any, pipeline: Any, care: Any) -> None: ...
    def push(
        self,
        time: NDArray[np.int64],
        columns: list[Any],  # int64 or float64 arrays
        keys: list[Any],  # int64 arrays
        wides: list[Any],  # (offsets, items), of int32 or int64; or (None, matrix)
    ) -> list[NDArray[np.int64]] | None: ...

@disjoint_base
class Turn:
    def take(self) -> bool: ...
    def give_back(self) -> None: ...

@disjoint_base
class Entrance:
    def __init__(
        self,
        feeds: list[Feed],
        number: int,
        turn: Turn,
        names: Sequence[str],
        columns: tuple[
            Sequence[tuple[str, np.dtype[Any]]], Sequence[tuple[str, np.dtype[Any], int]]
        ]
        | None,
        n_operands: int,
        plain: Any,  # a function of a table
    ) -> None: ...
    def push(self, rows: Any) -> dict[str, NDArray[np.int64]] | None: ...

@disjoint_base
class Door:
    _entrances: dict[str, Entrance]
    @property
    def _turn(self) -> Turn: ...
    def push(self, stream: str, rows: Any) -> Any: ...
