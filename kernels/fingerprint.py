"""A name for a function made from all that decides what it computes, and from nothing less."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

CONSTANTS = (bool, int, float, tuple, np.ndarray)  # of a module that a function may name


def fingerprint(function: Callable[..., Any]) -> str:
    """A name made from all that decides what the function computes."""
    digest = hashlib.sha256()
    _feed(digest, function, set())
    return digest.hexdigest()[:32]


def names_in(code: CodeType) -> tuple[str, ...]:
    """Globals and attributes that code names, functions inside it too."""
    inner = (names_in(part) for part in code.co_consts if isinstance(part, CodeType))
    return tuple(dict.fromkeys((*code.co_names, *(name for names in inner for name in names))))


def _feed(digest: Any, value: Any, seen: set[int]) -> None:
    """Add code, constants, closure and the globals it names; anything else by type and repr."""
    if hasattr(value, "py_func"):  # of a function that Numba compiled already, in its own way
        digest.update(repr(sorted(value.targetoptions.items())).encode())
        value = value.py_func
    if id(value) in seen:
        return
    if isinstance(value, FunctionType):
        seen.add(id(value))
        _feed(digest, value.__code__, seen)
        _feed(digest, value.__defaults__, seen)
        for cell in value.__closure__ or ():
            _feed(digest, cell.cell_contents, seen)
        names = names_in(value.__code__)
        for name in names:
            if name in value.__globals__:
                digest.update(name.encode())
                _feed(digest, value.__globals__[name], seen)
                _feed_attributes(digest, value.__globals__[name], names, seen)
    elif isinstance(value, CodeType):
        digest.update(value.co_code)
        digest.update(value.co_exceptiontable)
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
            if isinstance(value, CONSTANTS) or hasattr(value, "py_func"):
                digest.update(name.encode())
                _feed(digest, value, seen)
