from collections.abc import Callable, Sequence
from typing import Any, TypeVar, final

import numpy as np
from typing_extensions import disjoint_base
from windjoin.pyx.live.feed import Feed
from windjoin.pyx.live.ingest import Ingest

_Method = TypeVar("_Method", bound=Callable[..., Any])

@final
class Turn:
    def begin(self) -> None: ...
    def refuse(self) -> None: ...

@final
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
        ingest: Ingest | None,
    ) -> None: ...
    # tables, or dictionaries of arrival numbers
    def push(self, rows: Any, sequence: int = 0) -> Any: ...
    def through(self, rows: Any, sequence: int) -> Any: ...

@disjoint_base
class Door:
    _entrances: dict[str, Entrance]
    _ended: str
    sequence: int
    @property
    def _turn(self) -> Turn: ...
    def push(self, stream: str, rows: Any) -> Any: ...

def whole(method: _Method) -> _Method: ...
