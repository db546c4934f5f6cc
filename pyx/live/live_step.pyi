from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class LiveStep:
    @property
    def in_blocks(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def __init__(
        self,
        own: Any,  # a Store
        pipeline: Any,  # a Runner
        streams: int,
    ) -> None: ...
