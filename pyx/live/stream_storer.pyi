from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base
from windjoin.pyx.live.silence import Silence
from windjoin.pyx.live.store_step import StoreStep

@disjoint_base
class StreamStorer(StoreStep):
    def __init__(
        self,
        number: int,
        stores: Any,
        clocks: Any,
        give: Callable[[int, NDArray[np.int64], NDArray[np.int64], int, int], list[Any]],
        silence: Silence | None = None,
        added: int = 0,
    ) -> None: ...
