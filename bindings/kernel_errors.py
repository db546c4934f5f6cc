"""What kernels raise, as the errors users know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windjoin.errors import QueryError
from windjoin.kernels.functions import FunctionError


@contextmanager
def as_own_errors() -> Iterator[None]:
    """A function that cannot be compiled is a mistake in the query."""
    try:
        yield
    except FunctionError as error:
        raise QueryError(str(error)) from error
