from typing import Any

from typing_extensions import disjoint_base
from windjoin.pyx.live.store_step import StoreStep

@disjoint_base
class LiveStep(StoreStep):
    @property
    def in_blocks(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def __init__(
        self,
        number: int,
        stores: list[Any],
        clocks: list[Any],
        silence: Any,
        pipeline: Any,  # a Runner
    ) -> None: ...
