from typing_extensions import disjoint_base
from windjoin.pyx.base.index import Index

@disjoint_base
class CacheLineIndex(Index):
    def compact(self) -> bytearray: ...
    def clear(self) -> None: ...
    def forget(self, gone: bytearray) -> None: ...  # const uint8_t[::1], by code
