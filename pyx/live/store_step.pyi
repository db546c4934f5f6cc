from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class StoreStep:
    give: Any  # makes of rows of results what is given out; None: they are
    def __init__(
        self,
        number: int,
        stores: list[Any],
        clocks: list[Any],
        silence: Any,
    ) -> None: ...
