from typing import Any

def checksum(data: Any) -> int: ...  # const uint8_t[::1]
