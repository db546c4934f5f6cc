from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

_Bools = NDArray[np.bool_]
_Column = tuple[int, str, int, np.dtype[Any]]  # number, form, size, dtype

@disjoint_base
class Reading: ...

@disjoint_base
class Reader:
    def __new__(
        cls,
        columns: Sequence[_Column | None],
        n_varlen: int,
        tests: Sequence[tuple[_Column, str, float]] | None,
        owned: int,
        evaluate: Callable[
            [_Bools | None, Any, int, list[int]],
            tuple[_Bools | None, _Bools | None, _Bools | None, list[Any]],
        ]
        | None,
        names: Sequence[str],
        table_type: type,
    ) -> Self: ...
    # columns, wide columns; rows without a time, usable ones, present ones
    def read(
        self, rows: Any, first_row: int, named: bool = False, lies: bool = True
    ) -> tuple[list[Any], list[Any], _Bools | None, _Bools | None, _Bools | None]: ...
