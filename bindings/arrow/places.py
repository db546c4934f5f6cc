"""Errors on a host say where they happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windjoin.errors import WindjoinError


@contextmanager
def at_place(place: str) -> Iterator[None]:
    """The package's own errors get ``(on place)`` appended."""
    try:
        yield
    except WindjoinError as error:
        raise type(error)(f"{error} (on {place})") from error.__cause__ or error
