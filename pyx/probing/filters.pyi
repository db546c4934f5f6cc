from typing import Self

from typing_extensions import disjoint_base
from windjoin.pyx.base.cancellation import Cancellation

OPERATIONS: dict[str, int]

@disjoint_base
class Filters:
    def __new__(cls, cancellation: Cancellation) -> Self: ...
