"""A user's scalar function as a mask over a block of rows, compiled by Numba.

The loop over the block is compiled around the function and called by address, so a call costs a
fraction of a nanosecond per pair and needs no GIL.  A *scan* goes over the rows of a window as they
lie, all against one partial result, a *sweep* over the windows of several; a *mask* over candidates
whose operands were gathered.
Compiled code is kept on disk under a name made from the content of the function: it is compiled
once per machine, not once per process.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from windjoin.kernels.spec import Dtype, Function

_MASK = '''"""Mask of a windjoin function over a block of candidates."""


def mask(n, stride, ints, reals, out):
    use_widest()
    for i in range(n):
        out[i] = 1 if function({arguments}) else 0
'''
_SCAN = '''"""Mask of a windjoin function over the rows of a window, for one partial result."""


def mask(n, stride, bound_ints, bound_reals, own_ints, own_reals, out):
    use_widest()
{bound}
    for i in range(n):
        out[i] = 1 if function({arguments}) else 0
'''
_SWEEP = '''"""Mask of a windjoin function over windows of rows, one for each partial result."""


def mask(m, begin, count, bound_stride, bound_ints, bound_reals, own_stride, own_ints, own_reals,
         out):
    use_widest()
    at = 0
    for p in range(m):
        first = begin[p]
        n = count[p]
{bound}
        for i in range(n):
            out[at + i] = 1 if function({arguments}) else 0
        at += (n + 63) // 64 * 64
'''

# what they take before `out`: n a number, i integers, r reals
_MASK_TAKES, _SCAN_TAKES, _SWEEP_TAKES = "nnir", "nnirir", "niinirnir"

_compiled: dict[tuple[str, tuple[Dtype, ...], str], Any] = {}  # keeps the machine code alive
_one_at_a_time = Lock()  # threads of one run ask for the same function


CONSTANTS = (bool, int, float, tuple, np.ndarray)  # of a module that a function may name


class FunctionError(Exception):
    """Numba cannot compile a user's function."""


def compiled_mask(predicate: Function) -> int:
    """Address of ``void mask(n, stride, ints, reals, out)``.

    Operand k of pair i lies at ``k * stride + i``.
    """
    arguments = ", ".join(
        f"{_pointer('', dtype)}[{k} * stride + i]" for k, dtype in enumerate(predicate.dtypes)
    )
    return _address(predicate, _MASK.format(arguments=arguments), _MASK_TAKES)


def compiled_scan(predicate: Function, target: int) -> int:
    """Address of a ``Scan`` (slices.h): operands of ``target`` are its rows', all others bound."""
    arguments, bound = _split(predicate, target, "    b{0} = {1}[{0}]", "{1}[{0} * stride + i]")
    return _address(predicate, _SCAN.format(arguments=arguments, bound=bound), _SCAN_TAKES)


def compiled_sweep(predicate: Function, target: int) -> int:
    """Address of a ``Sweep`` (calls.h): the same for the windows of several partial results."""
    own = "{1}[{0} * own_stride + first + i]"
    arguments, bound = _split(predicate, target, "        b{0} = {1}[{0} * bound_stride + p]", own)
    return _address(predicate, _SWEEP.format(arguments=arguments, bound=bound), _SWEEP_TAKES)


def _split(predicate: Function, target: int, bound: str, own: str) -> tuple[str, str]:
    """Arguments of a call, and lines that fetch those bound; by number and array of an operand."""
    arguments: list[str] = []
    lines: list[str] = []
    for operand, dtype in zip(predicate.operands, predicate.dtypes, strict=True):
        if operand.stream == target:
            number = len(arguments) - sum(a.startswith("b") for a in arguments)
            arguments.append(own.format(number, _pointer("own_", dtype)))
        else:
            arguments.append(f"b{len(lines)}")
            lines.append(bound.format(len(lines), _pointer("bound_", dtype)))
    return ", ".join(arguments), "\n".join(lines)


def _pointer(prefix: str, dtype: Dtype) -> str:
    return f"{prefix}{'reals' if dtype == 'float64' else 'ints'}"


def _address(predicate: Function, source: str, takes: str) -> int:
    """Address of the compiled ``source`` around a function."""
    key = (fingerprint(predicate.function), predicate.dtypes, source)
    with _one_at_a_time:
        if key not in _compiled:
            _compiled[key] = _compile(predicate, key[0], source, takes)
    address: int = _compiled[key].address
    return address


def cache_folder() -> Path:
    """Where compiled functions are kept: $WINDJOIN_CACHE_DIR, or the user's cache folder."""
    given = os.environ.get("WINDJOIN_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "windjoin"


def fingerprint(function: Callable[..., Any]) -> str:
    """A name made from all that decides what the function computes."""
    digest = hashlib.sha256()
    _feed(digest, function, set())
    return digest.hexdigest()[:32]


def _feed(digest: Any, value: Any, seen: set[int]) -> None:
    """Add code, constants, closure and the globals it names; anything else by type and repr."""
    value = getattr(value, "py_func", value)  # of a function that Numba compiled already
    if id(value) in seen:
        return
    if isinstance(value, FunctionType):
        seen.add(id(value))
        _feed(digest, value.__code__, seen)
        _feed(digest, value.__defaults__, seen)
        for cell in value.__closure__ or ():
            _feed(digest, cell.cell_contents, seen)
        for name in value.__code__.co_names:
            if name in value.__globals__:
                digest.update(name.encode())
                _feed(digest, value.__globals__[name], seen)
                _feed_attributes(digest, value.__globals__[name], value.__code__.co_names, seen)
    elif isinstance(value, CodeType):
        digest.update(value.co_code)
        digest.update(repr((value.co_names, value.co_varnames, value.co_freevars)).encode())
        for constant in value.co_consts:
            _feed(digest, constant, seen)
    elif isinstance(value, ModuleType):
        digest.update(value.__name__.encode())
    elif isinstance(value, np.ndarray):  # its repr leaves values out
        digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, (tuple, list)):
        digest.update(f"{type(value).__qualname__}{len(value)}".encode())
        for item in value:
            _feed(digest, item, seen)
    else:
        digest.update(f"{type(value).__qualname__}:{value!r}".encode())


def _feed_attributes(digest: Any, owner: Any, names: tuple[str, ...], seen: set[int]) -> None:
    """What a function may take from a module it names: constants and compiled functions."""
    if isinstance(owner, ModuleType):
        for name in names:
            value = getattr(owner, name, None)
            if isinstance(value, (bool, int, float, tuple, np.ndarray)) or hasattr(
                value, "py_func"
            ):
                digest.update(name.encode())
                _feed(digest, value, seen)


def _compile(predicate: Function, name: str, source: str, takes: str) -> Any:
    import numba
    from numba import types

    pointer: Any = types.CPointer
    known = {"n": types.int64, "i": pointer(types.int64), "r": pointer(types.float64)}
    signature = types.void(*(known[letter] for letter in takes), pointer(types.uint8))
    function = predicate.function
    if not hasattr(function, "py_func"):
        function = numba.njit(error_model="numpy")(function)
    full_name = (
        f"mask_{hashlib.sha256((name + source + numba.__version__).encode()).hexdigest()[:32]}"
    )
    path = _source_file(full_name, source)
    mask = _loaded(full_name, path, function)
    try:
        try:
            return numba.cfunc(signature, cache=True)(mask)
        except ImportError:  # kept by a process that had modules which are not here
            return numba.cfunc(signature)(mask)
    except numba.core.errors.NumbaError as error:
        raise FunctionError(_reason(predicate, error)) from error


def _source_file(name: str, source: str) -> Path:
    """The module around the function, on disk so that Numba's cache can find it again."""
    for folder in (
        cache_folder() / "functions",
        Path(tempfile.gettempdir()) / f"windjoin-{os.getuid()}",
    ):
        path = folder / f"{name}.py"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                handle, draft = tempfile.mkstemp(dir=folder, suffix=".tmp")
                with os.fdopen(handle, "w") as file:
                    file.write(source)
                os.replace(draft, path)  # whole or not at all, also when many start at once
            return path
        except OSError:
            continue  # a read-only home: the next folder
    raise FunctionError(
        f"no folder to keep compiled functions in: neither {cache_folder()} nor "
        f"{tempfile.gettempdir()} can be written; set WINDJOIN_CACHE_DIR"
    )


def _loaded(name: str, path: Path, function: Any) -> Any:
    from windjoin.kernels.widest import use_widest

    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where Numba looks for it when it reads its cache
    spec.loader.exec_module(module)
    vars(module)["function"] = function
    vars(module)["use_widest"] = use_widest
    return module.mask


def _reason(predicate: Function, error: Exception) -> str:
    code = getattr(getattr(predicate.function, "py_func", predicate.function), "__code__", None)
    where = f' (File "{code.co_filename}", line {code.co_firstlineno})' if code else ""
    return (
        f"Numba cannot compile {predicate.text or predicate.function!r}{where} "
        f"for operands of type {', '.join(predicate.dtypes)}: {error}"
    )
