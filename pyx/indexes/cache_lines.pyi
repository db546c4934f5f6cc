from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

@disjoint_base
class CacheLineIndex(Index):
    def compact(self) -> bytearray: ...
