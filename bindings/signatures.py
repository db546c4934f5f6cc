"""Users' functions from outside: their names, and how many arguments they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from windjoin.errors import QueryError


def name_of(function: Callable[..., Any]) -> str:
    """A function as messages name it.

    >>> name_of(lambda x: x)
    'lambda'
    """
    name = str(getattr(function, "__name__", repr(function)))
    return "lambda" if name == "<lambda>" else name


def check_count(function: Callable[..., Any], given: int) -> None:
    """`QueryError` if a function cannot be called with so many columns."""
    try:
        signature = inspect.signature(getattr(function, "py_func", function))
    except (TypeError, ValueError):
        return  # some functions of C do not say what they take: Numba knows
    try:
        signature.bind(*range(given))
    except TypeError:
        raise QueryError(
            f"udf: function {name_of(function)} takes {_taken(signature)},"
            f" {given} column{'s were' if given > 1 else ' was'} given"
        ) from None


def _taken(signature: inspect.Signature) -> str:
    """What a function takes by position: ``2 arguments``, ``at least 1 argument``."""
    parameters = signature.parameters.values()
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            return f"{parameter.name!r} by name only"
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least, most = sum(p.default is p.empty for p in places), len(places)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return f"at least {least} argument{'s' * (least != 1)}"
    some = f"{least} to {most}" if least < most else f"{most}"
    return f"{some} argument{'s' * (most != 1)}"
