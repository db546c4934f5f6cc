from collections.abc import Callable, Sequence
from typing import Any, TypeVar, final

import numpy as np
from typing_extensions import disjoint_base
from windjoin.pyx.live.ingest import Ingest
from windjoin.pyx.live.store import Allowance
from windjoin.pyx.live.store_step import StoreStep

_Method = TypeVar("_Method", bound=Callable[..., Any])

@final
class SessionLock:
    def begin(self) -> None: ...
    def refuse(self) -> None: ...

@final
class StreamInput:
    def __init__(
        self,
        joiners: list[StoreStep],
        number: int,
        session_lock: SessionLock,
        names: Sequence[str],
        columns: tuple[
            Sequence[tuple[str, np.dtype[Any]]], Sequence[tuple[str, np.dtype[Any], int]]
        ]
        | None,
        n_operands: int,
        ingest: Ingest | None,
        allowance: Allowance | None = None,
    ) -> None: ...
    # tables, or dictionaries of arrival numbers
    def push(self, rows: Any, sequence: int = 0) -> Any: ...
    def through(self, rows: Any, sequence: int, told: bool = False) -> Any: ...

@disjoint_base
class SessionBase:
    _stream_inputs: dict[str, StreamInput]
    _ended: str
    sequence: int
    @property
    def _session_lock(self) -> SessionLock: ...
    def push(self, stream: str, rows: Any) -> Any: ...

def whole(method: _Method) -> _Method: ...
