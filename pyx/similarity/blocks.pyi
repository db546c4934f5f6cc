from collections.abc import Sequence
from typing import Any

from typing_extensions import disjoint_base
from windjoin.pyx.base.column import ColumnView
from windjoin.pyx.base.index import Index, Prober

@disjoint_base
class GroupProber(Prober):
    def __init__(
        self,
        # at most 4 of (stream that asks, its times, its window, the target's window,
        # (measure, views of asking rows, views of the target's rows))
        parts: Sequence[tuple[int, ColumnView, int, int, tuple[Any, Any, Any]]],
    ) -> None: ...

@disjoint_base
class BlockIndex(Index):
    @property
    def nbytes(self) -> int: ...
    def compact(self) -> bytes: ...

@disjoint_base
class RowIndex(BlockIndex): ...
