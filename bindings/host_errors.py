"""What a router refuses, or what fails on a host, as errors of this package."""

from __future__ import annotations

from typing import NoReturn

from windjoin.diffusion.errors import HostError, RoutingError
from windjoin.errors import ClusterError, WindjoinError
from windjoin.kernel_errors import own_error
from windjoin.kernels.compiling import CompileError
from windjoin.kernels.raised import FunctionRaised


class ToldWhere:
    """What a router refuses, or what fails on a host, as an error of this package.

    A class, as every push enters it.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, RoutingError):
            raise ClusterError(str(error)) from error
        if isinstance(error, HostError):
            _raise_cause(error)


def _raise_cause(error: HostError) -> NoReturn:
    """What failed on a host, with the place where it did."""
    cause = error.__cause__
    if isinstance(cause, (CompileError, FunctionRaised)):
        own = own_error(cause)
        raise own from own.__cause__
    if isinstance(cause, MemoryError):
        raise MemoryError(f"{str(cause) or 'no memory'} (on {error})") from cause
    if isinstance(cause, WindjoinError):
        raise type(cause)(f"{cause} (on {error})") from cause
    if isinstance(cause, Exception):
        raise ClusterError(f"{type(cause).__name__}: {cause} (on {error})") from cause
    raise KeyboardInterrupt("the join was stopped") from error


TOLD_WHERE = ToldWhere()
