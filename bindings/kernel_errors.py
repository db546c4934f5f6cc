"""What kernels raise, as the errors users know."""

from __future__ import annotations

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


class AsOwnErrors:
    """Let what kernels raise be what users know.

    A class, as every push enters it.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (CompileError, FunctionRaised)):
            own = own_error(error)
            raise own from own.__cause__


AS_OWN_ERRORS = AsOwnErrors()
