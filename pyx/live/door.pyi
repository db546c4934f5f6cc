from collections.abc import Callable, Sequence
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.live.feed import Feed

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
        plain: Any,  # a function of a table
    ) -> None: ...
    def push(self, rows: Any) -> dict[str, NDArray[np.int64]] | None: ...

@disjoint_base
class Door:
    _entrances: dict[str, Entrance]
    _ended: str
    sequence: int
    @property
    def _turn(self) -> Turn: ...
    def push(self, stream: str, rows: Any) -> Any: ...

def whole(method: _Method) -> _Method: ...
