from typing import Self

from typing_extensions import disjoint_base
from windjoin.pyx.base.pulse import Pulse

OPERATIONS: dict[str, int]

@disjoint_base
class Filters:
    def __new__(cls, pulse: Pulse) -> Self: ...
