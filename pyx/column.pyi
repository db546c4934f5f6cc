from typing import Any

from numpy.typing import NDArray

class ColumnView:
    def __init__(self, array: NDArray[Any] | None = None, mask: int = -1, first: int = 0) -> None: ...
    def bind(self, array: NDArray[Any], mask: int = -1, first: int = 0) -> None: ...
