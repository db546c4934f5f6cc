from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class Contents:
    def __new__(cls) -> Contents: ...
    @property
    def nbytes(self) -> int: ...
    def add(self, stop: int, part: Any) -> int: ...  # an array, or what has `nbytes`
    def clear(self) -> None: ...
