from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

Bools = NDArray[np.bool_]
Column = tuple[int, str, int, np.dtype[Any]]  # number, form, size, dtype

@disjoint_base
class Reading: ...

@disjoint_base
class Reader:
    def __new__(
        cls,
        columns: Sequence[Column | None],
        n_varlen: int,
        tests: Sequence[tuple[Column, str, float]] | None,
        owned: int,
        evaluate: Callable[
            [Bools | None, Any, int, list[int]],
            tuple[Bools | None, Bools | None, Bools | None, list[Any]],
        ]
        | None,
        names: Sequence[str],
        table_type: type,
    ) -> Self: ...
    # columns, wide columns; rows without a time, usable ones, present ones
    def read(
        self, rows: Any, first_row: int, named: bool = False, lies: bool = True
    ) -> tuple[list[Any], list[Any], Bools | None, Bools | None, Bools | None]: ...
