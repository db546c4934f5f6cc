from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class Checksum:
    def add(self, data: Any) -> None: ...  # const uint8_t[::1]
    @property
    def value(self) -> int: ...

def checksum(data: Any) -> int: ...  # const uint8_t[::1]
