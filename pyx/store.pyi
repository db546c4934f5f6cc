from typing import Any

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
    @property
    def most(self) -> int: ...
    def note(self) -> None: ...
    def copy(self) -> Extent: ...

@disjoint_base
class Store:
    @property
    def whole(self) -> bool: ...
    def __init__(self, window: Any, counts: Counts, spaces: Any) -> None: ...
