from collections.abc import Callable, Sequence

from typing_extensions import disjoint_base
from windjoin.pyx.live.store import Watermark

@disjoint_base
class Silence:
    def __init__(
        self, clocks: list[Watermark], limits: Sequence[float], now: Callable[[], float]
    ) -> None: ...
    def heard(self, stream: int) -> bool: ...
    def silent(self, stream: int) -> bool: ...
