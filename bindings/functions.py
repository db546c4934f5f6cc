"""Users' scalar functions: what they return, their values for whole columns, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.checking import Typed
from windjoin.columns import Values
from windjoin.errors import DataError, FunctionError, QueryError
from windjoin.evaluate import both
from windjoin.function_nodes import Udf
from windjoin.kernels import functions
from windjoin.kernels.compiling import CompileError, Returned, exception_of, returned
from windjoin.kernels.spec import Call, Dtype
from windjoin.kinds import BOOL, FLOAT, INTEGER, Kind
from windjoin.signatures import name_of

KINDS: dict[Returned, Kind] = {"bool": BOOL, "int64": INTEGER, "float64": FLOAT}


def kind_returned(node: Udf, arguments: Sequence[Kind]) -> Kind:
    """The kind of what a function returns for arguments of these kinds."""
    try:
        return KINDS[returned(node.function, _dtypes(arguments))]
    except CompileError as error:
        raise QueryError(f"`{node!r}`: {error}") from error


def vectorized(typed: Typed, arguments: Sequence[Values]) -> Values:
    """The values of a function, and where it raised.

    Integers and booleans arrive as int64, floats as double; where one of them has no value the
    function is not called.
    """
    assert isinstance(typed.node, Udf)
    asked = None
    for argument in arguments:
        asked = both(asked, argument.valid)
    rows = None if asked is None else np.flatnonzero(asked)
    columns = [_argument(typed.node, number, a, rows) for number, a in enumerate(arguments)]
    made = next(name for name, kind in KINDS.items() if kind.family == typed.kind.family)
    data, known, raised = functions.values(typed.node.function, made, columns)
    if made == "bool":
        data = data.view(np.bool_)
    elif made == "float64":
        known &= data == data
    if rows is not None:
        n = len(arguments[0].data)
        data, known, raised = (_spread(part, rows, n) for part in (data, known, raised))
    valid = None if known.all() else known
    return Values(typed.kind, data, valid, raised if raised.any() else None)


def _spread(values: NDArray[Any], rows: NDArray[np.int64], n: int) -> NDArray[Any]:
    whole = np.zeros(n, values.dtype)
    whole[rows] = values
    return whole


def _dtypes(kinds: Sequence[Kind]) -> tuple[Dtype, ...]:
    return tuple("float64" if kind.family == "float" else "int64" for kind in kinds)


def _argument(
    node: Udf, number: int, values: Values, rows: NDArray[np.int64] | None
) -> NDArray[Any]:
    data = values.data if rows is None else values.data[rows]
    if data.dtype in (np.uint64, object):
        beyond = (data > np.iinfo(np.int64).max) | (data < np.iinfo(np.int64).min)
        found = np.flatnonzero(beyond)
        if len(found):
            row = found[0] if rows is None else rows[found[0]]
            raise DataError(
                f"`{node!r}`: argument `{node.arguments[number]!r}`, row {row}: value"
                f" {data[found[0]]} does not fit int64; a user function takes int64 or float64"
            )
    return np.ascontiguousarray(data, np.float64 if data.dtype == np.float64 else np.int64)


def function_error(call: Call, where: str) -> FunctionError:
    """A call that raised: which function, of which rows, and what it raised, as ``__cause__``."""
    dtypes = tuple(np.asarray(value).dtype.name for value in call.values)
    cause = exception_of(call.function, dtypes, call.values)  # type: ignore[arg-type]
    values = ", ".join(map(repr, call.values))
    what = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    if cause is None:
        what = "an exception, but not when it was called again to say which"
    code = getattr(getattr(call.function, "py_func", call.function), "__code__", None)
    place = f' (File "{code.co_filename}", line {code.co_firstlineno})' if code else ""
    name = name_of(call.function)
    error = FunctionError(f"{where}: `{call.text}`: {name}({values}) raised {what}{place}")
    error.__cause__ = cause
    return error
