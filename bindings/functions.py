"""A user's scalar function over whole columns, compiled by Numba the first time it is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.errors import DataError, QueryError
from windjoin.expressions import Udf

_one_at_a_time = Lock()


@lru_cache(maxsize=256)
def _compiled(function: Callable[..., Any]) -> Any:
    import numba

    compiler: Any = numba.vectorize
    return compiler(nopython=True)(function)


def vectorized(node: Udf, arguments: list[NDArray[Any]]) -> NDArray[np.bool_]:
    """Where the function returns true; integers and booleans arrive as int64, floats as double."""
    from numba.core.errors import NumbaError

    columns = [_argument(node, number, values) for number, values in enumerate(arguments)]
    try:
        # The first call compiles: not in two threads at once.  inf * 0 is NaN, not worth a warning.
        with _one_at_a_time, np.errstate(all="ignore"):
            answer = _compiled(node.function)(*columns)
    except (NumbaError, TypeError) as error:
        reason = str(error).strip()
        raise QueryError(f"`{node!r}`: Numba cannot compile this function: {reason}") from error
    return np.asarray(answer).astype(np.bool_)


def _argument(node: Udf, number: int, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype == np.float64:
        return values
    if values.dtype in (np.uint64, object):
        beyond = (values > np.iinfo(np.int64).max) | (values < np.iinfo(np.int64).min)
        rows = np.flatnonzero(beyond)
        if len(rows):
            raise DataError(
                f"`{node!r}`: argument `{node.arguments[number]!r}`, row {rows[0]}: value"
                f" {values[rows[0]]} does not fit int64; a user function takes int64 or float64"
            )
    return values.astype(np.int64, copy=False)
