from typing import Self

from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

@disjoint_base
class LiveBandGrid(Index):
    def __new__(cls, width: float, real: bool) -> Self: ...
    def compact(self) -> None: ...
