"""What kernels raise, as the errors users know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windjoin.errors import QueryError
from windjoin.kernels.compiling import CompileError
from windjoin.kernels.raised import FunctionRaised


def own_error(error: BaseException) -> BaseException:
    """The error that a user sees; most are that already.

    A function that cannot be compiled is a mistake in the query.
    """
    if isinstance(error, CompileError):
        own: Exception = QueryError(str(error))
        own.__cause__ = error
        return own
    if isinstance(error, FunctionRaised):
        from windjoin.functions import function_error

        rows = [f"stream {name!r}, row {row}" for name, row in error.rows.items()]
        return function_error(error.call, ", with ".join(rows))
    return error


@contextmanager
def as_own_errors() -> Iterator[None]:
    """Let what kernels raise be what users know."""
    try:
        yield
    except (CompileError, FunctionRaised) as error:
        own = own_error(error)
        raise own from own.__cause__
