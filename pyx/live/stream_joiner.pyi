from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.live.live_step import LiveStep
from windjoin.pyx.live.silence import Silence

@disjoint_base
class StreamJoiner(LiveStep):
    since_maintenance: int
    patience: int
    @property
    def results(self) -> int: ...
    def __init__(
        self,
        number: int,
        stores: Any,
        clocks: Any,
        pipeline: Any,
        maintain: Any,
        give: Callable[[list[NDArray[np.int64]]], list[NDArray[Any]]] | None = None,
        silence: Silence | None = None,
    ) -> None: ...
    def push(
        self,
        time: NDArray[np.int64],
        columns: list[Any],  # int64 or float64 arrays
        keys: list[Any],  # int64 arrays
        varlen: list[Any],  # (offsets, items), of int32 or int64; or (None, matrix)
    ) -> list[NDArray[Any]] | None: ...
    def push_some(
        self,
        time: NDArray[np.int64],
        columns: list[Any],  # contiguous int64 or float64 arrays
        codes: list[NDArray[np.int32]],
        varlen_rows: list[Any],  # (starts, lengths, content)
        usable: NDArray[np.bool_] | None,
        ordered: bool,
        newest: int,
    ) -> list[NDArray[Any]]: ...
