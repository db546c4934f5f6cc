"""A user's scalar function in loops over rows, compiled by Numba.

The loop is compiled around the function and called by address, so a call costs a fraction of a
nanosecond per pair and needs no GIL.  A *scan* goes over the rows of a window as they lie, all
against one partial result, a *sweep* over the windows of several; a *mask* over candidates whose
operands were gathered.

A pair for which the function raises passes, and the loop returns that there was one: whether that
matters is known when the other conditions have been asked (see `raised`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.compiling import Returned, UserFunction, compiled, run
from windjoin.kernels.spec import Bools, Dtype, Function

PASSED, RAISED = 1, 2  # of a mask, where 0 is what does not hold

_MASK = '''"""Mask of a windjoin function over a block of candidates; 2 where it raised."""


def loop(n, stride, ints, reals, out):
    use_widest()
    any_raised = 0
    for i in range(n):
        raised, known, value = attempt(call, ({arguments},))
        out[i] = 2 if raised else 1 if known & ({test}) else 0
        any_raised |= raised
    return any_raised
'''
_SCAN = '''"""Mask of a windjoin function over the rows of a window, for one partial result."""


def loop(n, stride, bound_ints, bound_reals, own_ints, own_reals, out):
    use_widest()
    any_raised = 0
{bound}
    for i in range(n):
        raised, known, value = attempt(call, ({arguments},))
        out[i] = 1 if raised | (known & ({test})) else 0
        any_raised |= raised
    return any_raised
'''
_SWEEP = '''"""Mask of a windjoin function over windows of rows, one for each partial result."""


def loop(m, begin, count, bound_stride, bound_ints, bound_reals, own_stride, own_ints, own_reals,
         out):
    use_widest()
    any_raised = 0
    at = 0
    for p in range(m):
        first = begin[p]
        n = count[p]
{bound}
        for i in range(n):
            raised, known, value = attempt(call, ({arguments},))
            out[at + i] = 1 if raised | (known & ({test})) else 0
            any_raised |= raised
        at += (n + 63) // 64 * 64
    return any_raised
'''
_VALUES = '''"""Values of a windjoin function over whole columns."""


def loop(n, stride, ints, reals, out, state):
    use_widest()
    for i in range(n):
        raised, known, value = attempt(call, ({arguments},))
        out[i] = value
        state[i] = 2 if raised else 1 if known else 0
    return 0
'''

# what they take: n a number, i integers, r reals, b bytes
_MASK_TAKES, _SCAN_TAKES, _SWEEP_TAKES = "nnirb", "nnirirb", "niinirnirb"
_LETTERS: dict[Returned, str] = {"bool": "b", "int64": "i", "float64": "r"}


def compiled_mask(predicate: Function) -> int:
    """Address of ``int64 mask(n, stride, ints, reals, out)``, which returns whether any raised.

    Operand k of pair i lies at ``k * stride + i``.
    """
    address: int = _mask(predicate).address
    return address


def compiled_scan(predicate: Function, target: int) -> int:
    """Address of a ``Scan`` (slices.h): operands of ``target`` are its rows', all others bound."""
    own = "{1}[{0} * stride + i]"
    return _split(predicate, target, _SCAN, _SCAN_TAKES, "    b{0} = {1}[{0}]", own)


def compiled_sweep(predicate: Function, target: int) -> int:
    """Address of a ``Sweep`` (calls.h): the same for the windows of several partial results."""
    own = "{1}[{0} * own_stride + first + i]"
    bound = "        b{0} = {1}[{0} * bound_stride + p]"
    return _split(predicate, target, _SWEEP, _SWEEP_TAKES, bound, own)


def masked(predicate: Function, operands: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
    """Of pairs with these operands: PASSED where the predicate holds, RAISED where it raised."""
    n = len(operands[0])
    out = np.empty(n, np.uint8)
    joined = np.concatenate([operand.view(np.int64) for operand in operands])
    run(_mask(predicate), n, n, joined, joined, out)
    return out


def values(
    function: UserFunction, returned: Returned, arguments: Sequence[NDArray[Any]]
) -> tuple[NDArray[Any], Bools, Bools]:
    """What a function returns, where it returned something, where it raised."""
    n = len(arguments[0])
    dtypes: tuple[Dtype, ...] = tuple(a.dtype.name for a in arguments)  # type: ignore[misc]
    source = _VALUES.format(arguments=_gathered(dtypes))
    out, state = np.empty(n, returned), np.empty(n, np.uint8)
    joined = np.concatenate([argument.view(np.int64) for argument in arguments])
    loop = compiled(function, dtypes, source, f"nnir{_LETTERS[returned]}b")
    run(loop, n, n, joined, joined, out, state)
    return out, state == 1, state == RAISED


def _mask(predicate: Function) -> Any:
    operands = _gathered(predicate.dtypes).split(", ")
    source = _MASK.format(**_called(predicate, operands))
    return compiled(predicate.function, _arguments(predicate), source, _MASK_TAKES)


def _gathered(dtypes: Sequence[Dtype]) -> str:
    """Operands of pair i, gathered one behind the other."""
    return ", ".join(f"{_pointer('', d)}[{k} * stride + i]" for k, d in enumerate(dtypes))


def _split(predicate: Function, target: int, source: str, takes: str, bound: str, own: str) -> int:
    """Address of a loop whose operands lie apart: those of the rows, and those bound before.

    bound, own: how one is fetched, by its number and the array it lies in
    """
    operands: list[str] = []
    lines: list[str] = []
    for operand, dtype in zip(predicate.operands, predicate.dtypes, strict=True):
        if operand.stream == target:
            number = len(operands) - len(lines)
            operands.append(own.format(number, _pointer("own_", dtype)))
        else:
            operands.append(f"b{len(lines)}")
            lines.append(bound.format(len(lines), _pointer("bound_", dtype)))
    source = source.format(bound="\n".join(lines), **_called(predicate, operands))
    address: int = compiled(predicate.function, _arguments(predicate), source, takes).address
    return address


def _arguments(predicate: Function) -> tuple[Dtype, ...]:
    """Types of what the function is called with."""
    return predicate.dtypes[: predicate.arguments]


def _called(predicate: Function, operands: Sequence[str]) -> dict[str, str]:
    """The call, and what of its value must hold; NaN is unequal to nothing."""
    arguments = ", ".join(operands[: predicate.arguments])
    if predicate.operator is None:
        return {"arguments": arguments, "test": "bool(value)"}
    right = operands[-1] if predicate.right is None else repr(predicate.right)
    test = f"value {predicate.operator} {right}"
    if predicate.operator == "!=":
        test = f"({test}) & (value == value)"
    return {"arguments": arguments, "test": test}


def _pointer(prefix: str, dtype: Dtype) -> str:
    return f"{prefix}{'reals' if dtype == 'float64' else 'ints'}"
